# SPDX-License-Identifier: Apache-2.0
# Copyright the bkm authors.
"""torchtitan's eras: a class for each shape that the library's API has had.

A class recognises its era by the API itself, never by a version or a commit. The API changed in
three places at different times, so there are three families:

- `era`, `train_spec`, `registry`: how a model with a chosen attention is made;
- `configuration`: where a model configuration keeps its layers and its attention;
- `masks`: who keeps the masks of packed documents.
"""
