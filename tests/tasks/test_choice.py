"""Questions with options, texts as inputs, and the orders and versions in which they are shown."""

from __future__ import annotations

import csv
import gzip
import itertools
import json
import zipfile

import numpy as np
import pandas as pd
import pytest
import torch

import orbical as ob

QUESTIONS = [
    ("Which is a fruit?", ["stone", "apple", "chair", "cloud"], "B"),
    ("Which is a metal, or 金属?", ["wood", "paper", "iron", "wool"], "C"),
    ("Which swims?", ["a fish", "a tree", "a house", "a hill"], "A"),
    ("Which is “red”?", ["grass", "sky", "snow", "blood"], "D"),
    ("What is 2 + 2?", ["3", "4", "5", "22"], "B"),
]
KNOWN = {"apple": 3.0, "iron": 2.0, "a fish": 2.5, "blood": 1.0, "5": 0.5}


def fair(question: list[str], options: list[list[str]]) -> list[list[float]]:
    return [[KNOWN.get(text, 0.0) for text in row] for row in options]


def biased(question: list[str], options: list[list[str]]) -> list[list[float]]:
    return [
        [score + (1.5, 0.0, 0.0, 0.5)[place] for place, score in enumerate(row)]
        for row in fair(question, options)
    ]


def scanned(model=biased, data=QUESTIONS, group="permutations:4", **settings):
    return ob.scan(model, data, group=group, task="choice", progress=False, **settings)


def test_scores_are_those_of_questions_reordered_by_plain_python():
    scan = scanned()
    stored = scan.data.isel(model=0)
    for place, order in enumerate(itertools.permutations(range(4))):
        assert scan.group.name(place) == "order " + " ".join("ABCD"[row] for row in order)
        for number, (question, options, answer) in enumerate(QUESTIONS):
            shown = [options[row] for row in order]
            scores = biased([question], [shown])[0]
            by_text = dict(
                zip(
                    shown,
                    torch.tensor(scores, dtype=torch.float64).softmax(0).tolist(),
                    strict=True,
                )
            )
            one = stored.isel(sample=number, element=place)
            assert one["probabilities"].values.tolist() == [by_text[text] for text in options]
            best = max(range(4), key=scores.__getitem__)
            assert int(one["position"]) == best
            assert options[int(one["predicted"])] == shown[best]
            assert bool(one["correct"]) == (shown[best] == options["ABCD".index(answer)])


def test_a_fair_model_is_fair_and_a_scan_says_so():
    scan = scanned(fair)
    assert float(ob.nero.consistency(scan)["changed"].squeeze()) == 0
    correct = scan.data["correct"].values[0]
    assert correct.mean(0).tolist() == [0.8] * 24


@pytest.mark.parametrize("kind", ["csv", "plain csv", "gz", "jsonl", "parquet", "frame", "records",
                                  "hugging face"])  # fmt: skip
def test_questions_from_files_and_tables(kind, tmp_path):
    columns = {
        "question": [one[0] for one in QUESTIONS],
        **{letter: [one[1][k] for one in QUESTIONS] for k, letter in enumerate("ABCD")},
        "answer": [one[2] for one in QUESTIONS],
        "topic": ["food", "metal", "animal", "color", "sum"],
    }
    frame = pd.DataFrame(columns)
    records = [
        {"question": q, "choices": options, "answer": answer, "topic": topic}
        for (q, options, answer), topic in zip(QUESTIONS, columns["topic"], strict=True)
    ]
    path = tmp_path / "questions.csv"
    rows = [[q, *options, answer] for q, options, answer in QUESTIONS]
    if kind == "csv":
        frame.to_csv(path, index=False)
        data = path
    elif kind == "plain csv":
        with path.open("w", newline="") as file:
            csv.writer(file).writerows(rows)
        data = str(path)
    elif kind == "gz":
        data = tmp_path / "questions.csv.gz"
        with gzip.open(data, "wt", newline="") as file:
            csv.writer(file).writerows(rows)
    elif kind == "jsonl":
        data = tmp_path / "questions.jsonl"
        data.write_text("\n".join(map(json.dumps, records)))
    elif kind == "parquet":
        data = tmp_path / "questions.parquet"
        pd.DataFrame(records).to_parquet(data)
    elif kind == "frame":
        data = ob.data.Questions(frame)
    elif kind == "records":
        data = records
    else:
        datasets = pytest.importorskip("datasets")
        data = datasets.Dataset.from_list(records)
    expected = scanned()
    scan = scanned(data=data)
    assert np.array_equal(scan.data["probabilities"].values, expected.data["probabilities"].values)
    assert scan.data["label"].values.tolist() == [1, 2, 0, 3, 1]
    assert scan.data["name"].values.tolist() == columns["question"]
    if kind in ("csv", "jsonl", "parquet", "frame", "records", "hugging face"):
        assert scan.data["topic"].values.tolist() == columns["topic"]


def test_logged_samples_of_other_harnesses(tmp_path):
    harness = [
        {"doc_id": k, "doc": {"id": f"q{k}", "question": q, "answerKey": "1234"["ABCD".index(a)],
                              "choices": {"text": options, "label": ["1", "2", "3", "4"]}},
         "target": "ABCD".index(a), "acc": 1.0}
        for k, (q, options, a) in enumerate(QUESTIONS)
    ]  # fmt: skip
    path = tmp_path / "samples_arc.jsonl"
    path.write_text("\n".join(map(json.dumps, harness)))
    inspect = {"samples": [
        {"id": k, "input": [{"role": "system", "content": "Answer."},
                            {"role": "user", "content": q}], "choices": options, "target": a}
        for k, (q, options, a) in enumerate(QUESTIONS)
    ]}  # fmt: skip
    log = tmp_path / "log.json"
    log.write_text(json.dumps(inspect))
    expected = scanned().data["probabilities"].values
    for file in (path, log):
        scan = scanned(data=file)
        assert np.array_equal(scan.data["probabilities"].values, expected)
        assert scan.data["label"].values.tolist() == [1, 2, 0, 3, 1]
    assert scanned(data=path).data["doc_id"].values.tolist() == [0, 1, 2, 3, 4]


def logged(kind, tmp_path):
    """Write a log in which each question stands three times, and one of another task, too."""
    if kind == "filters":  # of lm-evaluation-harness, a line for each question and filter
        rows = [
            {"doc_id": k, "doc": {"question": q, "choices": options, "answer": a}, "filter": name}
            for name in ("none", "strict-match", "flexible-extract")
            for k, (q, options, a) in enumerate(QUESTIONS)
        ]
        other = {"question": "Which is a fruit?", "choices": ["a", "b", "c", "d"], "answer": "A"}
        rows.append({"doc_id": 0, "doc": other, "filter": "none"})
        path = tmp_path / "samples_mmlu.jsonl"
        path.write_text("\n".join(map(json.dumps, rows)))
        return path
    rows = [
        {"id": k, "epoch": epoch, "input": q, "choices": options[turn:] + options[:turn],
         "target": "ABCD"["ABCD".index(a) - turn]}
        for k, (q, options, a) in enumerate(QUESTIONS)
        for epoch, turn in ((1, 0), (2, 1), (3, 2))
    ]  # fmt: skip
    rows.append({**rows[0], "id": 7, "input": "Another task's?"})
    if kind == "epochs":
        path = tmp_path / "log.json"
        path.write_text(json.dumps({"samples": rows}))
        return path
    path = tmp_path / "log.eval"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", "{}")
        for row in rows:
            name = f"samples/{row['id']}_epoch_{row['epoch']}.json"
            archive.writestr(name, json.dumps(row))
    return path


@pytest.mark.parametrize(
    ("kind", "first"), [("filters", "filter 'none'"), ("epochs", "epoch 1"), ("archive", "epoch 1")]
)
def test_a_question_that_was_logged_several_times_is_taken_once(kind, first, tmp_path):
    path = logged(kind, tmp_path)
    expected = scanned().data["probabilities"].values
    message = rf"16 logged samples ask 6 questions; each is taken once, as first logged \({first}\)"
    with pytest.warns(UserWarning, match=message):
        scan = scanned(data=path)
    assert np.array_equal(scan.data["probabilities"].values[:, :5], expected)
    assert scan.data["label"].values.tolist() == [1, 2, 0, 3, 1, scan.data["label"].values[5]]


def test_an_archive_that_is_none(tmp_path):
    (tmp_path / "log.eval").write_text("not an archive")
    with pytest.raises(ob.errors.InputError, match=r"log\.eval' cannot be read"):
        ob.data.Questions(tmp_path / "log.eval")


@pytest.mark.parametrize("task", ["classification", "ordinal"])
def test_questions_for_a_task_with_classes_that_stay_suggest_choice(task):
    with pytest.raises(ob.errors.InputError, match="pass task='choice'"):
        ob.scan(fair, QUESTIONS, group="permutations:4", task=task, progress=False)
    moving = ob.tasks.Classification(representation="options")
    scan = ob.scan(fair, QUESTIONS, group="permutations:4", task=moving, progress=False)
    assert float(ob.nero.consistency(scan)["changed"].max()) == 0


def test_questions_with_other_numbers_of_options_are_left_out_aloud():
    data = [*QUESTIONS, ("Yes?", ["yes", "no"], 0)]
    with pytest.warns(UserWarning, match="1 question of 6 left out"):
        assert len(ob.data.Questions(data)) == 5
    with pytest.warns(UserWarning, match="5 questions of 6 left out"):
        assert ob.data.Questions(data, options=2).classes == ["A", "B"]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([("Q?", ["a", "b"], "C")], "one of A, B in row 0"),
        ([("Q?", ["a"], "A")], "at least two options"),
        ([{"text": "Q?"}], "a question"),
        ([("Q?", ["a", "b"], "A"), ("R?", ["a", "b"], None)], "every question or to none"),
    ],
)
def test_questions_that_cannot_be_read(rows, message):
    with pytest.raises(ob.errors.InputError, match=message):
        ob.data.Questions(rows)


def test_a_stored_scan_goes_on_and_its_average_is_a_model(tmp_path):
    store = tmp_path / "orders.zarr"
    scanned(out=store)
    scan = scanned({"biased": biased, "model": biased}, out=store)
    assert scan.models == ["model", "biased"]
    task = ob.tasks.Task.from_record(ob.load(store).record.to_json()["task"])
    average = ob.predictors.OrbitAverage(biased, "permutations:4", task)
    averaged = scanned(average)
    assert float(averaged.data["invariance_gap"].max()) < 1e-6
    consensus = scan.data["consensus"].values[0]
    assert np.allclose(averaged.data["probabilities"].values[0, :, 0], consensus, atol=1e-6)


def test_a_planted_bias_has_its_size_in_the_log_odds_of_positions():
    probabilities = scanned().data["probabilities"].values[0].astype(float)
    orders = ob.groups.permutations(4).parts["rows"]
    by_position = np.stack([probabilities[:, k, order] for k, order in enumerate(orders)], 1)
    log_odds = np.log(by_position).mean((0, 1))
    assert np.allclose(log_odds - log_odds[1], [1.5, 0.0, 0.0, 0.5], atol=1e-5)


def test_texts_and_chats_are_classified_as_lists():
    texts = ["a good film", "a bad film", "good"]

    def model(batch: list[str]) -> list[list[float]]:
        assert isinstance(batch, list)
        return [[1.0, 0.0] if "good" in text.lower() else [0.0, 1.0] for text in batch]

    versions = [[text, text.upper(), text + "?"] for text in texts]
    group = ob.groups.variations("as written", "capitals", "a question")
    task = ob.tasks.Classification(ob.actions.Versions(), outputs="probabilities")
    scan = ob.scan(model, (versions, [0, 1, 0]), group=group, task=task, progress=False)
    assert scan.data["correct"].values.all()
    assert scan.group.name(1) == "variation capitals"

    chats = [[{"role": "user", "content": text}] for text in texts]

    def chatting(batch: list[list[dict[str, str]]]) -> list[list[float]]:
        return model([chat[-1]["content"] for chat in batch])

    again = ob.scan(chatting, (chats, [0, 1, 0]), group="trivial", progress=False,
                    task=ob.tasks.Classification(outputs="probabilities"))  # fmt: skip
    assert again.data["correct"].values.all()


def test_variations_claim_no_inverse_and_substitutions_have_one():
    group = ob.groups.variations("as written", "capitals", "polite")
    assert not group.closed
    assert not group.contains_inverses
    with pytest.raises(ob.errors.InputError, match="an inverse"):
        ob.actions.Versions().move(group.inverse(), torch.zeros(3, 1, 3, 4, dtype=torch.uint8))
    orders = list(itertools.permutations(range(3)))
    table = [[orders.index(tuple(a[x] for x in b)) for b in orders] for a in orders]
    names = ["".join("ABC"[x] for x in order) for order in orders]
    whole = ob.groups.variations(*names, products=table)
    assert whole.closed
    assert whole.contains_inverses
    first, second = whole[[3]], whole[[1]]
    assert int(whole.index_of(second.compose(first))[0]) == table[3][1]
    with pytest.raises(ob.errors.InputError, match="associative"):
        ob.groups.variations(*"abcde", products=[[0, 1, 2, 3, 4], [1, 0, 3, 4, 2], [2, 4, 0, 1, 3],
                                                 [3, 2, 4, 0, 1], [4, 3, 1, 2, 0]])  # fmt: skip


def test_cyclic_orders_bring_each_option_once_to_each_position():
    rows = ob.groups.cyclic_orders(5).parts["rows"]
    assert (np.sort(rows, axis=0) == np.arange(5)[:, None]).all()
    assert ob.groups.cyclic_orders(5).closed


@pytest.mark.parametrize("written", [str, str.lower, " {}.".format])
def test_a_model_may_answer_with_letters_alone(written):
    """An endpoint without log-probabilities states which position it chooses, and no more."""

    def letters(question, options):
        chosen = [max(range(4), key=row.__getitem__) for row in biased(question, options)]
        return [written("ABCD"[place]) for place in chosen]

    stated, scored = scanned(letters), scanned()
    for name in ("predicted", "position", "correct"):
        assert np.array_equal(stated.data[name].values, scored.data[name].values)
    assert {*stated.data["probabilities"].values.ravel()} == {0.0, 1.0}


def test_a_judge_may_state_a_tie():
    task = ob.tasks.Choice(classes=["first", "second", "tie"])

    def judge(question, options):
        return ["tie" if len({*map(len, row)}) == 1 else "A" for row in options]

    data = [("Better?", ["aa", "bb"], "tie"), ("Better?", ["a", "bb"], "B")]
    scan = ob.scan(judge, data, group="reversal:2", task=task, progress=False)
    assert scan.data["predicted"].values[0].tolist() == [[2, 2], [0, 1]]
    with pytest.raises(ob.errors.ModelError, match="one of A, B, C for each question, got 'none'"):
        ob.scan(lambda question, options: ["None"] * len(question), data, group="reversal:2",
                task=task, progress=False)  # fmt: skip


def test_errors_in_a_model_of_texts_name_it():
    with pytest.raises(ob.errors.ModelError, match="on texts: KeyError"):
        scanned(lambda question, options: {}["x"])


@pytest.mark.parametrize("kind", ["csv", "jsonl", "list"])
@pytest.mark.parametrize("answer", ["E", "7", "purple"])
def test_a_wrong_answer_in_the_first_row_is_named(kind, answer, tmp_path):
    (question, options, _), *others = QUESTIONS
    rows = [(question, options, answer), *others]
    data = rows
    if kind != "list":
        data = tmp_path / f"questions.{kind}"
    if kind == "csv":
        with data.open("w", newline="", encoding="utf-8") as file:
            table = csv.writer(file)
            table.writerow(["question", "A", "B", "C", "D", "answer"])
            table.writerows([q, *o, a] for q, o, a in rows)
    if kind == "jsonl":
        records = [{"question": q, "choices": o, "answer": a} for q, o, a in rows]
        data.write_text("\n".join(map(json.dumps, records)), encoding="utf-8")
    row = {"csv": 2, "jsonl": 1}.get(kind, 0)
    message = f"one of A, B, C, D in row {row}, got '{answer}'"
    with pytest.raises(ob.errors.InputError, match=message):
        scanned(data=data)


def test_a_function_with_other_parameters_is_told_their_names():
    def model(texts, answers):
        return fair(texts, answers)

    with pytest.raises(ob.errors.ModelError, match="name the parameters question, options"):
        scanned(model)


def test_probabilities_that_are_always_stored_may_be_asked_for():
    assert "probabilities" in scanned(keep="probabilities").data
    with pytest.raises(ob.errors.InputError, match="keep: unknown name 'probability'"):
        scanned(keep="probability")


def test_a_tie_may_be_the_right_answer_of_a_judge():
    def longer(question, options):
        ahead = [len(first) - len(second) + 0.5 for first, second in options]
        return [[d, -d, 1.2 - abs(d)] for d in ahead]

    data = [("Q?", ["abc", "a"], "A"), ("R?", ["ab", "cd"], "tie"), ("S?", ["a", "ab"], "B"),
            ("T?", ["tie", "abcdef"], "tie")]  # fmt: skip
    assert ob.data.Questions(data[:1]).classes == ["A", "B"]
    scan = ob.scan(longer, data, group="reversal:2", task="choice", progress=False)
    assert scan.data["label"].values.tolist() == [0, 2, 1, 0]
    assert scan.data.sizes["class"] == 3
    right = scan.data["correct"].values[0]
    assert right.tolist() == [[True, True], [True, True], [False, True], [False, False]]
    bias = ob.nero.position_bias(scan).isel(model=0)  # of the three questions without a tie
    shown = np.stack([right[[0, 2, 3], [0, 1, 0]], right[[0, 2, 3], [1, 0, 1]]])  # first, second
    assert np.allclose(bias["accuracy"], shown.mean(1))


def written(path, rows, delimiter=","):
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file, delimiter=delimiter)
        table.writerows([["question", "A", "B", "C", "answer"], *rows])
    return ob.data.Questions(path)


def test_numbers_in_a_table_are_indices_or_options_whichever_all_can_be(tmp_path):
    sums = ["1 + 1?", "1", "2", "3"]
    indices = written(tmp_path / "i.csv", [["Red?", "sky", "blood", "sun", 1], [*sums, 1]])
    assert indices.labels.tolist() == [1, 1]
    options = written(tmp_path / "o.csv", [["Red?", "sky", "blood", "sun", "blood"], [*sums, 2]])
    assert options.labels.tolist() == [1, 1]
    with pytest.raises(ob.errors.InputError, match="'2', which is both; state answers by letters"):
        written(tmp_path / "b.csv", [[*sums, 2]])
    assert ob.data.Questions([(sums[0], sums[1:], 1)]).labels.tolist() == [1]  # a number itself
    named = {"text": ["one", "two", "three"], "label": ["1", "2", "3"]}  # as in ARC
    records = [{"question": "1 + 1?", "choices": named, "answerKey": "2"}]
    assert ob.data.Questions(records).labels.tolist() == [1]


def test_questions_of_a_spreadsheet_with_semicolons(tmp_path):
    rows = [["Red, or not?", "sky", "blood; warm", "sun", "B"]]
    data = written(tmp_path / "s.csv", rows, ";")
    assert (data.labels.tolist(), data.names) == ([1], ["Red, or not?"])
    assert data.read(0, 1)[0]["options"] is not None


def test_a_data_frame_is_scanned_and_empty_cells_are_no_options(tmp_path):
    frame = pd.DataFrame([[q, *o, a] for q, o, a in QUESTIONS],
                         columns=["question", "A", "B", "C", "D", "answer"])  # fmt: skip
    stored = scanned(data=frame).data["predicted"].values
    assert np.array_equal(stored, scanned().data["predicted"].values)
    frame.loc[0, ["C", "D"]] = None
    with pytest.warns(UserWarning, match="1 question of 5 left out"):
        assert len(ob.data.Questions(frame)) == 4


def test_a_table_of_questions_without_rows_is_one(tmp_path):
    with pytest.raises(ob.errors.InputError, match="at least one question, got none"):
        written(tmp_path / "none.csv", [])
    with pytest.raises(ob.errors.InputError, match="at least one question, got none"):
        scanned(data=tmp_path / "none.csv")


def test_orders_of_other_options_are_answered_with_a_group_that_exists():
    with pytest.raises(ob.errors.InputError, match=r"pass permutations:4$"):
        scanned(group="permutations:3")
    ob.groups.parse("permutations:4")


def test_a_function_of_one_argument_is_told_the_names_of_the_fields():
    questions = [("Which is a fruit?", ["a stone", "an apple"], "B")] * 3
    with pytest.raises(ob.errors.ModelError, match="a dictionary of 'question', 'options'"):
        ob.scan(lambda prompts: ["A"] * len(prompts), questions, task="choice", progress=False)


LISTS = ('["red", "dark, blue"]', "['red', 'dark, blue']", "('red', 'dark, blue')")


@pytest.mark.parametrize("name", ["q.csv", "q.tsv"])
@pytest.mark.parametrize("cell", LISTS)
def test_a_cell_with_a_list_is_a_list_of_options(tmp_path, name, cell):
    path = tmp_path / name
    with path.open("w", newline="") as file:
        writer = csv.writer(file, delimiter="\t" if name.endswith("tsv") else ",")
        writer.writerows([["question", "options", "answer"], ["Which?", cell, "dark, blue"]])
    data = ob.data.Questions(path)
    assert data.read(0, 1)[0]["options"].shape[1] == 2
    assert data.labels.tolist() == [1]


@pytest.mark.parametrize(
    "cell", ["red, blue", "abc", "['red' 'blue']", '"ab"', "12", '{"a": 1, "b": 2}', "[" * 9999]
)
def test_a_cell_that_is_no_list_is_never_split_into_characters(tmp_path, cell):
    path = tmp_path / "q.csv"
    with path.open("w", newline="") as file:
        rows = [["question", "options", "answer"], ["One?", "['a', 'b']", "A"], ["Two?", cell, "A"]]
        csv.writer(file).writerows(rows)
    with pytest.raises(
        ob.errors.InputError, match=r'options in row 3 as a list, .*\["red", "blue"\]'
    ):
        ob.data.Questions(path)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("question,A,B,answer\nOne?,a,b,A\nTwo?,a,b,E\n", "row 3, got 'E'"),
        ("One?,a,b,A\nTwo?,a,b,E\n", "row 2, got 'E'"),
        ("question,A,answer\nOne?,a,A\n", "at least two options in row 2, got ['a']"),
    ],
)
def test_rows_are_numbered_as_in_the_file(tmp_path, table, message):
    (tmp_path / "q.csv").write_text(table)
    with pytest.raises(ob.errors.InputError) as refused:
        ob.scan(lambda question, options: [[0.0]], tmp_path / "q.csv", task="choice")
    assert message in str(refused.value)
