"""Checks and runs ONNX models: `run.py FOLDER`, with what `tests/src/onnxruntime.rs` wrote there.

A job is a model and the inputs of several runs. Inputs that a run is not given are, as the model's metadata says, the new
values that the run before returned. Answers are written beside the questions.
"""

import ctypes
import json
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime

BF16 = onnx.TensorProto.BFLOAT16
NUMPY = {"f64": "f8", "f32": "f4", "f16": "f2", "bf16": "u2", "bool": "?"}


def numpy_type(dtype):
    return np.dtype(NUMPY.get(dtype) or f"{dtype[0]}{int(dtype[1:]) // 8}")


def value(description, data):
    start, length = description["data"]
    array = np.frombuffer(data[start : start + length], numpy_type(description["dtype"])).reshape(description["shape"])
    if description["dtype"] == "bf16":
        return onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(np.copy(array), BF16)
    return onnxruntime.OrtValue.ortvalue_from_numpy(np.copy(array))


def contents(ort_value, dtype):
    shape = ort_value.shape()
    size = int(np.prod(shape, dtype=np.int64)) * numpy_type(dtype).itemsize
    return shape, ctypes.string_at(ort_value.data_ptr(), size) if size else b""


def run(job, data, answers):
    start, length = job["model"]
    model = onnx.load_from_string(data[start : start + length])
    onnx.checker.check_model(model, full_check=True)
    onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(data[start : start + length], options, providers=["CPUExecutionProvider"])
    updates = {p.key[8:]: p.value for p in model.metadata_props if p.key.startswith("updates:")}
    names = [output.name for output in session.get_outputs()]
    state, results = {}, []
    for number, inputs in enumerate(job["runs"], start=1):
        state.update((description["name"], value(description, data)) for description in inputs)
        fed = {i.name: state[i.name] for i in session.get_inputs()}
        outputs = session.run_with_ort_values(names, fed)
        state.update((updates[name], output) for name, output in zip(names, outputs) if name in updates)
        if not job["only_last"] or number == len(job["runs"]):
            results.append([describe(output, dtype, answers) for output, dtype in zip(outputs, job["outputs"])])
    return results


def describe(output, dtype, answers):
    shape, raw = contents(output, dtype)
    answers.write(raw)
    return {"shape": shape, "data": [answers.tell() - len(raw), len(raw)]}


def main(folder):
    onnxruntime.set_default_logger_severity(4)
    data = (folder / "data.bin").read_bytes()
    found = []
    with open(folder / "answers.bin", "wb") as answers, open(folder / "at.txt", "w") as at:
        for job in json.loads((folder / "jobs.json").read_text()):
            # Should a kernel end the process, this tells where.
            at.seek(0)
            at.truncate()
            at.write(job["name"])
            at.flush()
            try:
                found.append({"results": run(job, data, answers)})
            except Exception as error:
                found.append({"error": f"{type(error).__name__}: {error}"})
    (folder / "answers.json").write_text(json.dumps(found))


main(Path(sys.argv[1]))
