"""Compare a model's networks in bfloat16 with float32: shares of bicubic's MSE, block means, every pixel the same.

python benchmarks/precision.py --dataset "nyuv2:FOLDER" --split val --crops 12
python benchmarks/precision.py --dataset "scenes:FOLDER?only=Lampshade1,Lampshade2,Aloe"
"""

from __future__ import annotations

import argparse

import torch

import dada
from dada.datasets import load_dataset
from dada.datasets.crops import to_sample
from dada.training.validation import spread_crops

FACTORS = (4, 8, 16, 32)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dataset", required=True)
    parser.add_argument("--split", default="test")
    parser.add_argument("--crops", type=int, default=12, help="of 256 x 256 pixels, spread over the images")
    parser.add_argument("--model", default="default")
    options = parser.parse_args()
    dataset = load_dataset(options.dataset, split=options.split)
    crops = spread_crops(dataset, options.crops, 256)
    print(f"{'':>5} {'float32':>9} {'bfloat16':>9}   {len(crops)} crops of {dataset.name}, {options.split}")
    for factor in FACTORS:
        errors = {"bicubic": 0.0, "float32": 0.0, "bfloat16": 0.0}
        for crop in crops:
            sample = to_sample(crop, factor, dataset.unit, "torch")
            assert sample.target is not None
            assert sample.target_mask is not None
            results = {"bicubic": sample.initial[0, 0]}
            for precision in ("float32", "bfloat16"):
                given = sample.source[0, 0], sample.guide[0]
                how = {"mask": sample.source_mask[0, 0], "fill": True, "invalid": None, "model": options.model}
                results[precision] = dada.upsample(*given, precision=precision, **how).values  # type: ignore[arg-type]
            for name, image in results.items():
                errors[name] += float(
                    ((image.to(torch.float64) - sample.target[0, 0]).square() * sample.target_mask[0, 0]).sum()
                )
        shares = (errors[name] / errors["bicubic"] for name in ("float32", "bfloat16"))
        print(f"x{factor:<4} " + " ".join(f"{share:9.4f}" for share in shares), flush=True)


if __name__ == "__main__":
    main()
