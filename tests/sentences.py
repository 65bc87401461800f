"""Every sentence of the package by its code, in English and Chinese, to look through them."""

from labharness.core.texts import WORDS, shipped, templates

SENTENCES = {code: said for code in shipped() if code != WORDS and (said := templates(code))}
