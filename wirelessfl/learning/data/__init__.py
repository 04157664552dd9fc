"""Datasets: real ones from files as published, and synthetic ones."""

from wirelessfl.learning.data.adult import load_adult, load_adult_stand_in
from wirelessfl.learning.data.catalogue import LOADERS, Loader, load_dataset, load_digits
from wirelessfl.learning.data.cifar import load_cifar10
from wirelessfl.learning.data.examples import Dataset, DatasetFacts, Examples, stratified_split
from wirelessfl.learning.data.mnist import load_emnist_byclass, load_emnist_letters, load_fashion_mnist, load_mnist
from wirelessfl.learning.data.synthetic import (
    LogNormalSizes,
    SharedSource,
    SkewedSources,
    SyntheticLaw,
    load_synthetic,
)

__all__ = [
    "LOADERS",
    "Dataset",
    "DatasetFacts",
    "Examples",
    "Loader",
    "LogNormalSizes",
    "SharedSource",
    "SkewedSources",
    "SyntheticLaw",
    "load_adult",
    "load_adult_stand_in",
    "load_cifar10",
    "load_dataset",
    "load_digits",
    "load_emnist_byclass",
    "load_emnist_letters",
    "load_fashion_mnist",
    "load_mnist",
    "load_synthetic",
    "stratified_split",
]
