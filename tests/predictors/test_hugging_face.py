"""Models of transformers, tiny and random: outputs in pixels of the images that were given."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

import orbical as ob
from orbical.errors import InputError, ModelError
from orbical.predictors import HuggingFacePredictor, TorchPredictor, as_predictor

transformers = pytest.importorskip("transformers", reason="transformers is not installed")
CPU = torch.device("cpu")
SIDE = 16


def answer(predictor, batch):
    with predictor.ready(CPU):
        return predictor(batch)


@pytest.fixture(scope="module")
def images():
    return torch.rand(2, 3, 20, 28, generator=torch.Generator().manual_seed(0))


@pytest.fixture(scope="module")
def processor():
    return transformers.ViTImageProcessor(
        size={"height": SIDE, "width": SIDE}, image_mean=[0.4, 0.5, 0.6], image_std=[0.2] * 3
    )


@pytest.fixture(scope="module")
def classifier():
    torch.manual_seed(0)
    return transformers.ViTForImageClassification(
        transformers.ViTConfig(
            hidden_size=8,
            num_hidden_layers=1,
            num_attention_heads=2,
            intermediate_size=8,
            image_size=SIDE,
            patch_size=8,
            id2label={0: "cat", 1: "dog", 2: "cup"},
        )
    )


@pytest.fixture(scope="module")
def detector():
    """YOLOS: the last class is "no object"."""
    torch.manual_seed(0)
    return transformers.YolosForObjectDetection(
        transformers.YolosConfig(
            hidden_size=8,
            num_hidden_layers=1,
            num_attention_heads=2,
            intermediate_size=8,
            image_size=[SIDE, SIDE],
            patch_size=8,
            num_detection_tokens=5,
            id2label={0: "cat", 1: "dog", 2: "cup"},
        )
    ).eval()


@pytest.fixture(scope="module")
def segmenter():
    torch.manual_seed(0)
    return transformers.SegformerForSemanticSegmentation(
        transformers.SegformerConfig(
            num_encoder_blocks=2,
            depths=[1, 1],
            sr_ratios=[1, 1],
            hidden_sizes=[8, 8],
            patch_sizes=[3, 3],
            strides=[2, 2],
            num_attention_heads=[1, 1],
            mlp_ratios=[1, 1],
            decoder_hidden_size=8,
            num_labels=3,
        )
    ).eval()


def test_a_processor_prepares_the_images_as_the_library_does(classifier, processor, images):
    photographs = (images * 255).round().byte().permute(0, 2, 3, 1).numpy()
    by_hand = processor(images=[*photographs], return_tensors="pt")
    expected = classifier.eval()(**by_hand).logits.detach()
    found = answer(
        HuggingFacePredictor(classifier, processor),
        torch.as_tensor(photographs).permute(0, 3, 1, 2) / 255,
    )
    torch.testing.assert_close(found.logits, expected, atol=1e-4, rtol=1e-4)


def test_a_scan_applies_the_processor_after_the_group_has_moved_the_images(classifier, processor):
    square = torch.rand(3, 3, 24, 24, generator=torch.Generator().manual_seed(1))
    scan = ob.scan(
        HuggingFacePredictor(classifier, processor),
        square,
        group="cyclic:4",
        task="classification",
        keep="probabilities",
        progress=False,
    )
    turned = torch.rot90(square, 1, (2, 3))
    pixels = processor(images=[*turned], do_rescale=False, return_tensors="pt")
    expected = classifier.eval()(**pixels).logits.softmax(-1).detach()
    found = scan.data["probabilities"].isel(model=0, element=1).values
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_a_model_alone_gets_images_as_they_are_and_keeps_its_fingerprint(classifier):
    pixels = torch.randn(2, 3, SIDE, SIDE)
    predictor = as_predictor(classifier)
    assert isinstance(predictor, HuggingFacePredictor)
    expected = classifier.eval()(pixels).logits.detach()
    torch.testing.assert_close(answer(predictor, pixels).logits, expected)
    torch.testing.assert_close(answer(predictor, {"pixel_values": pixels}).logits, expected)
    assert predictor.fingerprint() == TorchPredictor(classifier).fingerprint()
    assert predictor.classes == ["cat", "dog", "cup"]


def test_queries_become_boxes_in_pixels_as_the_library_decodes_them(detector, images):
    found = answer(as_predictor(detector), images)
    post = transformers.YolosImageProcessor().post_process_object_detection
    raw = detector(images)
    for place, expected in enumerate(post(raw, 0.0, [(20, 28)] * 2)):
        for name, values in expected.items():
            torch.testing.assert_close(found[name][place], values.detach(), msg=name)


def test_queries_without_a_class_of_no_object_are_ranked_over_all_classes(images):
    from types import SimpleNamespace

    from orbical.predictors.hugging_face_models import _hugging_face_detections

    generator = torch.Generator().manual_seed(2)
    logits, boxes = (
        torch.randn(2, 6, 3, generator=generator),
        torch.rand(2, 6, 4, generator=generator),
    )
    found = _hugging_face_detections(logits, boxes, 3, (20, 28))
    post = transformers.RTDetrImageProcessor().post_process_object_detection
    raw = SimpleNamespace(logits=logits, pred_boxes=boxes)
    for place, expected in enumerate(post(raw, 0.0, [(20, 28)] * 2)):
        for name, values in expected.items():
            torch.testing.assert_close(found[name][place], values, msg=name)


def test_a_detector_is_scanned(detector):
    views = torch.rand(2, 3, SIDE + 8, SIDE + 8)
    truth = torch.tensor([[[2.0, 2, 12, 12, 0]], [[4.0, 4, 14, 14, 1]]])
    task = ob.tasks.Detection(ob.actions.Window(SIDE), classes=["cat", "dog", "cup"])
    scan = ob.scan(detector, (views, truth), group="translations:4:4", task=task, progress=False)
    assert float(scan.data["count"].max()) == 5
    assert bool(scan.data["score"].notnull().all())


def test_class_maps_have_the_size_of_the_images(segmenter, images):
    found = answer(as_predictor(segmenter), images)
    raw = segmenter(images)
    assert found.logits.shape == (2, 3, 20, 28)
    post = transformers.SegformerImageProcessor().post_process_semantic_segmentation
    for maps, expected in zip(found.logits, post(raw, [(20, 28)] * 2), strict=True):
        assert torch.equal(maps.argmax(0), expected)
    task = ob.tasks.Segmentation()
    scan = ob.scan(segmenter, images, group="flips", task=task, progress=False)
    assert scan.data["consensus"].shape == (1, 2, 20, 28)


def test_a_saved_folder_is_a_model(classifier, processor, images, tmp_path, monkeypatch):
    classifier.save_pretrained(tmp_path / "vit")
    predictor = as_predictor(str(tmp_path / "vit"))
    assert predictor.processor is None
    processor.save_pretrained(tmp_path / "vit")
    predictor = as_predictor(str(tmp_path / "vit"))
    assert predictor.source == str(tmp_path / "vit")
    expected = answer(HuggingFacePredictor(classifier, processor), images).logits
    torch.testing.assert_close(answer(predictor, images).logits, expected)
    assert predictor.fingerprint() != as_predictor(classifier).fingerprint()


def test_a_pipeline_is_scanned_as_its_model_with_its_processor(classifier, processor):
    pipeline = transformers.pipeline(
        "image-classification", model=classifier, image_processor=processor
    )
    predictor = as_predictor(pipeline)
    assert predictor.module is pipeline.model
    assert predictor.processor is processor


def test_what_the_processor_cannot_prepare_is_named(classifier, processor, images):
    predictor = HuggingFacePredictor(classifier, processor)
    for batch, words in (
        (images * 4 - 2, r"values in 0..1, which the processor normalizes, got -2"),
        (images[:, :1], r"images \[N, 3, H, W\] for the processor, got \[2, 1, 20, 28\]"),
        ({"pixel_values": images}, "got dict"),
    ):
        with pytest.raises(InputError, match=words):
            predictor(batch)
    with pytest.raises(InputError, match=r"processor: expected an image processor, .* got str"):
        HuggingFacePredictor(classifier, "vit")


@pytest.mark.parametrize(
    "config", [{}, {"model_type": "vit"}, {"model_type": "vit", "architectures": ["Mine"]}]
)
def test_folders_without_a_known_model_are_refused(config, tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(ModelError, match="expected a folder that save_pretrained wrote"):
        as_predictor(str(tmp_path))


@pytest.mark.parametrize("size", ["num_hidden_layers", "hidden_size", "num_labels"])
@pytest.mark.parametrize("times", [1000, 10**30])
def test_models_that_are_larger_than_their_files_are_not_built(size, times, classifier, tmp_path):
    classifier.save_pretrained(tmp_path)
    as_predictor(str(tmp_path))
    path = tmp_path / "config.json"
    config = json.loads(path.read_text())
    path.write_text(json.dumps(config | {size: config.get(size, 100) * times}))
    with pytest.raises((InputError, ModelError), match=r"fits the weights|expected a folder"):
        as_predictor(str(tmp_path))
    assert not torch.nn.modules.module._global_parameter_registration_hooks


def _renamed_weight(folder, start):
    """Rename the first weight that begins so, as another version of a library may."""
    from safetensors.torch import load_file, save_file

    path = folder / "model.safetensors"
    weights = load_file(path)
    name = next(name for name in weights if name.startswith(start))
    weights[f"old.{name}"] = weights.pop(name)
    save_file(weights, path, metadata={"format": "pt"})


@pytest.mark.parametrize("start", ["classifier", "vit.encoder", "vit.embeddings"])
def test_a_folder_without_all_weights_is_refused_and_no_random_ones_are_used(
    classifier, tmp_path, start
):
    classifier.save_pretrained(tmp_path)
    _renamed_weight(tmp_path, start)
    with pytest.raises(
        InputError, match=r"all weights of ViTForImageClassification, got .* without"
    ):
        as_predictor(str(tmp_path))


def test_weights_that_are_tied_to_others_are_not_missing_but_those_are(tmp_path):
    config = transformers.LlamaConfig(
        vocab_size=32, hidden_size=8, intermediate_size=8, num_hidden_layers=1,
        num_attention_heads=2, tie_word_embeddings=True,
    )  # fmt: skip
    model = transformers.LlamaForCausalLM(config)
    model.save_pretrained(tmp_path)
    loaded = ob.predictors.CausalLM(tmp_path, tokenizer=len).module
    assert torch.equal(loaded.lm_head.weight, model.model.embed_tokens.weight)
    _renamed_weight(tmp_path, "model.embed_tokens")
    with pytest.raises(InputError, match=r"all weights of LlamaForCausalLM, got .* without"):
        ob.predictors.CausalLM(tmp_path, tokenizer=len)
