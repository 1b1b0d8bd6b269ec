"""Every kind of data gives the same samples, with names, labels, class names and metadata."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
import torch
import xarray as xr
import zarr
from PIL import Image
from torch.utils.data import DataLoader, Dataset, IterableDataset, Subset, TensorDataset

import orbical as ob
from orbical.data.open_data import as_source
from orbical.data.samples import Samples
from orbical.errors import InputError

PIXELS = np.random.default_rng(0).integers(0, 256, (6, 8, 8, 3), np.uint8)
IMAGES = torch.from_numpy(PIXELS.transpose(0, 3, 1, 2).astype(np.float32) / np.float32(255))
LABELS = np.array([0, 0, 0, 1, 1, 1])
PLACES = ["cat/a.png", "cat/b.png", "cat/c.png", "dog/a.png", "dog/b.png", "dog/c.png"]


class Numbers(IterableDataset):
    """A stream with a length."""

    def __init__(self, length=6):
        self.length = length

    def __len__(self):
        return self.length

    def __iter__(self):
        return iter(zip(IMAGES, LABELS, strict=True))


@pytest.fixture
def photos(tmp_path):
    for pixels, place in zip(PIXELS, PLACES, strict=True):
        (tmp_path / "photos" / place).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(tmp_path / "photos" / place)
    return tmp_path / "photos"


@pytest.fixture
def frame():
    names = [("cat", "dog")[label] for label in LABELS]
    return pd.DataFrame({"path": PLACES, "label": names, "site": list("nnssww"), "age": range(6)})


def saved(path, array):
    np.save(path, array)
    return path


def in_zarr(folder):
    group = zarr.open_group(folder / "set.zarr", mode="w")
    for name, values in {"x": IMAGES.numpy(), "y": LABELS, "age": np.arange(6)}.items():
        group.create_array(name, data=values)
    return folder / "set.zarr"


def with_arrays(folder):
    np.savez(folder / "set.npz", x=IMAGES.numpy(), y=LABELS, name=PLACES, age=np.arange(6))
    return folder / "set.npz"


MAPPED = {
    "tensors": lambda folder: (IMAGES, LABELS),
    "npz": with_arrays,
    "npy": lambda folder: (
        saved(folder / "x.npy", IMAGES.numpy()),
        saved(folder / "y.npy", LABELS),
    ),
    "memmap": lambda folder: (np.load(saved(folder / "x.npy", IMAGES.numpy()), "r"), LABELS),
    "zarr group": in_zarr,
    "open zarr group": lambda folder: zarr.open_group(in_zarr(folder), mode="r"),
    "list of pairs": lambda folder: [(x, int(y)) for x, y in zip(IMAGES, LABELS, strict=True)],
    "zarr array": lambda folder: (zarr.open(in_zarr(folder), mode="r")["x"], LABELS),
    "xarray": lambda folder: xr.Dataset(
        {"x": (("n", "c", "i", "j"), IMAGES.numpy()), "y": ("n", LABELS)}
    ),
    "xarray array": lambda folder: (xr.DataArray(IMAGES.numpy()), LABELS),
    "dask": lambda folder: (xr.DataArray(IMAGES.numpy()).chunk(2).data, LABELS),
    "list": lambda folder: ([*IMAGES.numpy()], LABELS),
    "Dataset": lambda folder: TensorDataset(IMAGES, torch.from_numpy(LABELS)),
    "Subset": lambda folder: Subset(TensorDataset(IMAGES, torch.from_numpy(LABELS)), range(6)),
    "DataLoader": lambda folder: DataLoader(TensorDataset(IMAGES, torch.from_numpy(LABELS)), 4),
    "collated": lambda folder: DataLoader(
        list(zip(IMAGES, LABELS, strict=True)), 4, collate_fn=collated
    ),
    "stream": lambda folder: Numbers(),
    "stream in batches": lambda folder: DataLoader(Numbers(), 4),
    "dictionaries": lambda folder: DataLoader(in_fields(), 4),
    "dictionaries in batches": lambda folder: DataLoader(Rows(), 4),
    "pictures": lambda folder: DataLoader(
        [(Image.fromarray(one), int(y)) for one, y in zip(PIXELS, LABELS, strict=True)]
    ),
    "pictures in fields": lambda folder: ob.data.Stream(
        [
            {"image": Image.fromarray(one), "label": int(y), "site": "n"}
            for one, y in zip(PIXELS, LABELS, strict=True)
        ],
        6,
    ),
    "generator": lambda folder: ob.data.Stream(zip(IMAGES, LABELS, strict=True), 6),
}


def in_fields():
    pairs = enumerate(zip(IMAGES, LABELS, strict=True))
    return [{"image": x, "label": int(y), "id": at} for at, (x, y) in pairs]


class Rows(IterableDataset):
    """A stream of dictionaries."""

    def __len__(self):
        return 6

    def __iter__(self):
        return iter(in_fields())


def collated(items):
    inputs, labels = zip(*items, strict=True)
    return torch.stack(inputs), torch.tensor(labels)


@pytest.mark.parametrize("kind", MAPPED)
def test_every_kind_of_data_gives_the_same_samples(kind, tmp_path):
    samples = Samples(MAPPED[kind](tmp_path))
    assert len(samples) == 6
    samples.first(2)  # what a scan looks at before it starts
    for start, stop in ((0, 1), (0, 4), (4, 6)):
        inputs, targets = samples.read(start, stop)
        assert torch.equal(inputs, IMAGES[start:stop]), kind
        assert np.asarray(targets).tolist() == LABELS[start:stop].tolist()


@pytest.mark.parametrize("kind", sorted({*MAPPED} - {"generator"}))
def test_sources_travel_to_other_processes(kind, tmp_path):
    source = as_source(MAPPED[kind](tmp_path))
    copy = pickle.loads(pickle.dumps(source))
    assert np.array_equal(np.asarray(copy.read(2, 5)[0]), IMAGES[2:5])


def test_a_mapped_array_is_pickled_by_its_place_in_the_file(tmp_path):
    np.save(tmp_path / "x.npy", np.arange(40_000.0).reshape(400, 100))
    part = np.load(tmp_path / "x.npy", "r")[10:390]
    content = pickle.dumps(as_source(part))
    assert len(content) < 1000
    assert np.array_equal(pickle.loads(content).read(0, 380)[0], part)


def test_fields_of_a_model_stay_together_and_gray_pictures_have_one_channel():
    gray = [Image.fromarray(one[..., 0]) for one in PIXELS]
    fields = [{"image": IMAGES[0], "question": torch.arange(3), "target": 1.5}] * 2
    inputs, targets = ob.data.Stream(fields, 2).read(0, 2)
    assert [*inputs] == ["image", "question"]
    assert targets.tolist() == [1.5, 1.5]
    images, none = ob.data.Stream(gray, 6).read(0, 6)
    assert none is None
    assert torch.equal(images[:, 0], torch.from_numpy(PIXELS[..., 0] / np.float32(255)))
    masks = ob.data.Stream([(IMAGES[0], gray[0])], 1).read(0, 1)[1]
    assert np.array_equal(masks[0], PIXELS[0, ..., 0])  # classes, not shades


def test_a_list_of_two_is_two_samples_and_a_tuple_is_inputs_and_labels():
    assert len(as_source([IMAGES[0], IMAGES[1]])) == 2
    assert as_source([IMAGES[0], IMAGES[1]]).labels is None
    assert len(as_source((IMAGES, LABELS))) == 6


def test_a_folder_names_samples_and_classes(photos):
    source = as_source(str(photos))
    assert source.names == PLACES
    assert source.classes == ["cat", "dog"]
    images, labels = source.read(0, 6)
    assert torch.equal(images, IMAGES)
    assert labels.tolist() == LABELS.tolist()


def test_a_source_prints_what_it_holds(photos):
    source = ob.data.ImageFolder(photos)
    assert repr(source) == f"ImageFolder({len(source)} samples, {len(source.classes)} classes)"
    assert repr(ob.data.Stream([], length=2000)) == "Stream(2,000 samples)"


def test_folders_are_some_of_the_classes_of_a_model(photos):
    source = ob.data.ImageFolder(photos, classes=["ant", "cat", "cow", "dog"])
    assert source.labels.tolist() == [1, 1, 1, 3, 3, 3]
    with pytest.raises(InputError, match=r"classes: expected the names of all classes .* 'dog'"):
        ob.data.ImageFolder(photos, classes=["cat"])
    flat = ob.data.ImageFolder(photos / "cat", classes=["ant", "cat"])
    assert (flat.labels, flat.classes) == (None, ["ant", "cat"])  # of what models predict


def test_the_first_of_nested_folders_is_the_class(tmp_path):
    """As torchvision's ImageFolder: the folders beside each other, sorted, are the classes."""
    for name in ("things/car", "animals/dog", "animals/cat"):
        (tmp_path / name).mkdir(parents=True)
        Image.new("RGB", (4, 4)).save(tmp_path / name / "1.png")
    source = ob.data.open_path(tmp_path)
    assert source.classes == sorted(entry.name for entry in tmp_path.iterdir())
    assert source.names == ["animals/cat/1.png", "animals/dog/1.png", "things/car/1.png"]
    assert source.labels.tolist() == [0, 0, 1]


def test_a_folder_without_subfolders_has_no_labels(photos):
    source = as_source(photos / "cat")
    assert source.labels is None
    assert source.classes is None
    assert source.read(0, 3)[1] is None


@pytest.mark.parametrize(
    ("options", "shape"),
    [
        ({"size": 4}, (3, 4, 4)),
        ({"size": (4, 6)}, (3, 4, 6)),
        ({"size": 16}, (3, 16, 16)),
        ({"mode": "L"}, (1, 8, 8)),
        ({"transform": lambda image: np.asarray(image)[:2, :2, 0]}, (2, 2)),
    ],
)
def test_images_are_resized_and_transformed(photos, options, shape):
    images, _ = ob.data.ImageFolder(photos, **options).read(0, 2)
    assert tuple(images.shape) == (2, *shape)


def test_folders_in_folders_of_classes_are_explained(photos, tmp_path):
    (tmp_path / "animals").mkdir()
    photos.rename(tmp_path / "animals" / "all")
    with pytest.raises(InputError, match="none for 'animals'; the first folder is the class"):
        ob.data.ImageFolder(tmp_path, classes=["cat", "dog"])


def test_a_text_is_no_list_of_class_names(photos):
    with pytest.raises(InputError, match=r"classes: expected a list of names, got 'names.txt'"):
        ob.data.ImageFolder(photos, classes="names.txt")


def test_a_photo_is_read_upright(tmp_path):
    exif = Image.Exif()
    exif[0x0112] = 6  # the camera was held upright: turn by a quarter
    Image.new("RGB", (12, 8)).save(tmp_path / "1.jpg", exif=exif)
    Image.new("RGB", (8, 12)).save(tmp_path / "2.jpg")
    source = as_source(tmp_path)
    source.check()
    assert tuple(source.read(0, 2)[0].shape) == (2, 3, 12, 8)


def test_the_center_of_a_wide_image_is_kept():
    reader = ob.data.image_files.ImageReader(size=4)
    wide = np.zeros((8, 16, 3), np.uint8)
    wide[:, 4:12] = 255
    assert float(reader.convert(Image.fromarray(wide)).min()) > 0.5


@pytest.mark.parametrize("kind", ["csv", "csv;", "tsv", "parquet", "frame"])
def test_a_table_has_labels_class_names_and_metadata(photos, frame, kind):
    path = photos / f"table.{kind.rstrip(';')}"
    if kind == "frame":
        source = ob.data.Table(frame, root=photos)
    else:
        if kind == "parquet":
            pytest.importorskip("pyarrow")
            frame.to_parquet(path)
        else:
            frame.to_csv(path, sep={"tsv": "\t", "csv;": ";"}.get(kind, ","), index=False)
        source = as_source(path)
    assert source.classes == ["cat", "dog"]
    assert source.labels.tolist() == LABELS.tolist()
    assert source.columns["site"].tolist() == list("nnssww")
    assert source.columns["age"].tolist() == [*range(6)]
    assert source.names == PLACES
    assert torch.equal(source.read(2, 4)[0], IMAGES[2:4])


def test_columns_of_any_type_become_numbers_or_text():
    from orbical.data.tables import table_column

    assert table_column(pd.Series(["a", None])).tolist() == ["a", ""]
    assert table_column(pd.Series([True, False])).dtype == bool
    assert np.isnan(table_column(pd.Series([1, None], dtype="Int64"))[1])
    assert table_column(pd.Series(pd.to_datetime(["2026-01-02"]))).tolist() == [
        "2026-01-02 00:00:00"
    ]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (dict(path="file"), "expected a column 'file' in 'the data frame', got path, label, site"),
        (dict(label="truth"), "expected a column 'truth'"),
        (dict(columns=["camera"]), "expected a column 'camera'"),
        (dict(root="elsewhere"), "got 6 of 6 that do not exist in 'elsewhere'"),
        (dict(size=0), "size: expected a number of pixels or"),
        (dict(mode="RBG"), "mode: unknown name 'RBG'"),
        (dict(unreadable="ignore"), "unreadable: unknown name 'ignore'"),
        (dict(transform=3), "transform: expected a function of an image, got 3"),
    ],
)
def test_a_table_that_cannot_be_used_is_refused_before_any_work(photos, frame, change, words):
    with pytest.raises(InputError) as caught:
        ob.data.Table(frame, **{"root": photos, **change})
    assert words in str(caught.value)


def test_rows_without_a_label_or_a_path_are_refused(photos, frame):
    with pytest.raises(InputError, match="got none in 1 of 6, first in row 2"):
        ob.data.Table(frame.assign(label=["a", "b", None, "a", "a", "a"]), root=photos)
    with pytest.raises(InputError, match=r"expected a path in each row .* in row 1"):
        ob.data.Table(frame.assign(path=["cat/a.png", None, *PLACES[2:]]), root=photos)
    with pytest.raises(InputError, match="expected at least one row"):
        ob.data.Table(frame[:0], root=photos)


def test_images_that_cannot_be_read_are_named_and_counted(photos):
    (photos / "cat" / "a.png").write_bytes(b"no image")
    (photos / "dog" / "b.png").write_bytes(b"")
    with pytest.raises(InputError) as caught:
        as_source(photos).check()
    assert "2 of 6 images" in str(caught.value)
    assert "'cat/a.png', 'dog/b.png'" in str(caught.value)
    assert "(UnidentifiedImageError: cannot identify image file); pass" in str(caught.value)
    assert "pass unreadable='skip' (--unreadable skip)" in str(caught.value)


def test_images_that_cannot_be_read_are_left_out_on_request(photos):
    (photos / "cat" / "a.png").write_bytes((photos / "cat" / "a.png").read_bytes()[:-60])
    with pytest.warns(UserWarning, match=r"1 of 6 images .* 'cat/a.png' .* left out"):
        source = ob.data.ImageFolder(photos, unreadable="skip")
    assert source.names == PLACES[1:]
    assert source.labels.tolist() == [0, 0, 1, 1, 1]
    assert torch.equal(source.read(0, 5)[0], IMAGES[1:])
    with pytest.raises(InputError, match=r"1 of 6 images .* 'cat/a.png' \(OSError"):
        ob.data.ImageFolder(photos).read(0, 6)
    for place in PLACES:
        (photos / place).write_bytes(b"no image")
    with pytest.raises(InputError, match="expected at least one image, but 6 of 6 images"):
        ob.data.ImageFolder(photos, unreadable="skip")


def test_images_of_several_sizes_need_one(photos):
    Image.new("RGB", (9, 7)).save(photos / "dog" / "d.png")
    with pytest.raises(InputError) as caught:
        as_source(photos).check()
    assert "got 2 sizes" in str(caught.value)
    assert "8 x 8 (6), 9 x 7 (1)" in str(caught.value)
    assert "size=224" in str(caught.value)
    resized = ob.data.ImageFolder(photos, size=8)
    resized.check()
    assert tuple(resized.read(0, 7)[0].shape) == (7, 3, 8, 8)


def test_folders_without_images_are_refused(tmp_path, photos):
    (tmp_path / "empty").mkdir()
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "a.txt").write_text("a")
    Image.new("RGB", (8, 8)).save(photos / "beside.png")
    for place, words in (
        (tmp_path / "empty", "got an empty folder"),
        (tmp_path / "texts", "got other files: 1 with .txt"),
        (photos, "got 1 images beside 2 folders with images"),
        (tmp_path / "gone", "which does not exist"),
        (tmp_path / "texts" / "a.txt", "expected a folder of images or a file .npz"),
    ):
        with pytest.raises(InputError, match=words):
            as_source(place)
    with pytest.raises(InputError, match="which does not exist"):
        ob.data.ImageFolder(tmp_path / "gone")
    every = ob.data.ImageFolder(photos, size=8, labeled=False)
    assert every.labels is None
    assert every.classes is None
    assert "beside.png" in every.names


class Endless(IterableDataset):
    def __iter__(self):
        return iter(IMAGES)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Samples(Numbers(9)).read(0, 9), "a stream of 9 samples, got the end after 6"),
        (lambda: Samples(Endless()), "pass a stream with orbical.data.Stream"),
        (lambda: Samples(iter(IMAGES)), "pass orbical.data.Stream"),
        (lambda: ob.data.Stream(IMAGES, 0), "length: expected the number of samples"),
        (lambda: ob.data.Stream(3, 5), "items: expected an iterable"),
        (lambda: Samples(DataLoader(IMAGES, shuffle=True)), "DataLoader that does not shuffle"),
        (lambda: Samples((Numbers(), [1, 2])), "labels: expected one for each of 6"),
        (lambda: Samples([IMAGES[0], IMAGES[0, :, :4]]), "resize or crop images to one size"),
    ],
)
def test_streams_and_loaders_that_cannot_be_used_are_refused(make, words):
    with pytest.raises(InputError) as caught:
        make()
    assert words in str(caught.value)


def test_a_generator_is_read_once_and_says_so():
    stream = ob.data.Stream((image for image in IMAGES), 6)
    stream.read(0, 4)
    with pytest.raises(InputError, match="read up to sample 4; pass a function"):
        stream.read(0, 2)
    again = ob.data.Stream(lambda: (image for image in IMAGES), 6)
    again.read(0, 4)
    assert torch.equal(again.read(1, 3)[0], IMAGES[1:3])


def test_an_endless_stream_is_cut_at_its_length():
    def endless():
        while True:
            yield IMAGES[0]

    assert len(Samples(ob.data.Stream(endless, 3)).read(0, 3)[0]) == 3


class Named(Dataset):
    classes = ("cat", "dog")

    def __len__(self):
        return 1

    def __getitem__(self, row):
        return IMAGES[row]


def test_class_names_of_torchvision_are_taken():
    assert as_source(Named()).classes == ["cat", "dog"]


def test_point_clouds_of_different_sizes_are_padded():
    clouds = [np.ones((2, 3)), np.ones((5, 3))]
    inputs, labels = as_source((clouds, [0, 1])).read(0, 2)
    assert tuple(inputs["pos"].shape) == (2, 5, 3)
    assert inputs["mask"].sum(1).tolist() == [2, 5]
    assert labels.tolist() == [0, 1]


def test_graphs_are_padded():
    data = pytest.importorskip("torch_geometric.data")
    graphs = [
        data.Data(
            pos=torch.ones(size, 3),
            z=torch.full((size,), 6),
            edge_index=torch.zeros(2, size - 1, dtype=torch.long),
            y=torch.tensor([float(size)]),
        )
        for size in (2, 4, 3)
    ]
    source = as_source(graphs)
    inputs, targets = source.read(0, 3)
    assert tuple(inputs["pos"].shape) == (3, 4, 3)
    assert inputs["mask"].sum(1).tolist() == [2, 4, 3]
    assert inputs["z"][0].tolist() == [6, 6, 0, 0]
    assert inputs["edge_index"][0].tolist() == [[0, 0], [-1, -1], [-1, -1]]
    assert targets.tolist() == [2, 4, 3]


def test_a_data_set_of_hugging_face_has_classes_and_metadata(tmp_path):
    datasets = pytest.importorskip("datasets")
    features = datasets.Features(
        image=datasets.Image(),
        label=datasets.ClassLabel(names=["cat", "dog"]),
        site=datasets.Value("string"),
    )
    pictures = [Image.fromarray(pixels) for pixels in PIXELS]
    rows = {"image": pictures, "label": LABELS.tolist(), "site": list("nnssww")}
    data = datasets.Dataset.from_dict(rows, features=features)
    for given in (data, data.select([*range(6)])):
        source = as_source(given)
        assert source.classes == ["cat", "dog"]
        assert source.columns["site"].tolist() == list("nnssww")
        images, labels = source.read(1, 5)
        assert torch.equal(images, IMAGES[1:5])
        assert labels.tolist() == LABELS[1:5].tolist()
    assert as_source(data.select([5, 0])).columns["site"].tolist() == ["w", "n"]
    data.save_to_disk(tmp_path / "saved")
    assert torch.equal(as_source(tmp_path / "saved").read(0, 2)[0], IMAGES[:2])
    with pytest.raises(InputError, match="expected one split, got test"):
        as_source(datasets.DatasetDict(test=data))
    with pytest.raises(InputError, match="input: unknown name 'picture'"):
        ob.data.HuggingFace(data, input="picture")
    with pytest.raises(InputError, match="got a streaming one; pass orbical"):
        as_source(data.to_iterable_dataset())
    streamed = ob.data.Stream(data.to_iterable_dataset(), 6)
    assert torch.equal(streamed.read(1, 5)[0], IMAGES[1:5])


def test_stamps_change_with_files_and_settings(photos, tmp_path):
    assert as_source(photos).stamp() == as_source(photos).stamp()
    assert as_source(photos).stamp() != ob.data.ImageFolder(photos, size=4).stamp()
    before = as_source(photos).stamp()
    Image.fromarray(PIXELS[0, :, ::-1]).save(photos / "cat" / "a.png")
    assert as_source(photos).stamp() != before
    mapped = np.load(saved(tmp_path / "x.npy", IMAGES.numpy()), "r")
    assert as_source(mapped).stamp() != as_source((mapped, LABELS)).stamp()
    assert as_source(mapped).stamp() != as_source(mapped[1:]).stamp()
    assert as_source(IMAGES).stamp() is None
    assert as_source(np.load(tmp_path / "x.npy", "c")).stamp() is None


@pytest.mark.parametrize("kind", ["zarr", "dask", "xarray"])
def test_each_chunk_of_a_stored_array_is_read_once(tmp_path, kind):
    rows = np.arange(70.0, dtype=np.float32).reshape(35, 2)
    stored = zarr.create_array(tmp_path / "x.zarr", data=rows, chunks=(8, 2))
    array = {
        "zarr": lambda: stored,
        "dask": lambda: xr.DataArray(rows).chunk(8).data,
        "xarray": lambda: xr.DataArray(rows).chunk(8),
    }[kind]()
    source = as_source(array)
    chunked = source._x
    read = []
    original = chunked._array

    class Spy:
        def __getitem__(self, rows):
            read.append((rows.start, rows.stop))
            return original[rows]

    chunked._array = Spy()
    found = [np.asarray(source.read(at, min(at + 3, 35))[0]) for at in range(0, 35, 3)]
    assert np.array_equal(np.concatenate(found), rows)
    assert read == [(0, 8), (8, 16), (16, 24), (24, 32), (32, 35)]
    assert np.array_equal(source.read(1, 30)[0], rows[1:30])


def test_a_function_as_data_is_refused_with_what_to_pass_instead():
    words = r"got the function .*scans; pass what it returns, or, .* orbical.data.Stream"

    def scans():
        yield from IMAGES

    for data in (scans, (scans, LABELS)):
        with pytest.raises(InputError, match=words):
            as_source(data)


def test_arrays_are_found_by_their_usual_names(tmp_path):
    path = tmp_path / "set.npz"
    np.savez(path, images=IMAGES.numpy(), labels=LABELS, age=np.arange(6))
    source = as_source(path)
    images, labels = source.read(0, 6)
    assert torch.equal(torch.as_tensor(images), IMAGES)
    assert labels.tolist() == [*LABELS]
    assert [*source.columns] == ["age"]
    np.savez(path, pictures=IMAGES.numpy())
    with pytest.raises(InputError, match=r"got pictures .*; rename them, .* x=images, y=labels"):
        as_source(path)


@pytest.mark.parametrize("classes", [["right", "left"], ["both", "left", "right"]])
def test_classes_that_the_data_number_differently_are_refused(classes, tmp_path):
    """Names are for display: a scan would otherwise call every left image right."""
    for place, name in enumerate(("left", "right")):
        (tmp_path / name).mkdir()
        Image.new("L", (8, 8), 100 * place).save(tmp_path / name / "1.png")

    def scan(data, names):
        task = ob.tasks.Classification(classes=names)
        return ob.scan(lambda x: x.flatten(1)[:, : len(names)], data, group="flips", task=task,
                       progress=False).data["label"].values.tolist()  # fmt: skip

    with pytest.raises(ob.errors.InputError, match=r"as the data number it.*ImageFolder"):
        scan(tmp_path, classes)
    ordered = ob.data.ImageFolder(tmp_path, classes=classes)
    assert scan(ordered, classes) == [classes.index("left"), classes.index("right")]
    assert scan(tmp_path, ["links", "rechts"]) == [0, 1]
