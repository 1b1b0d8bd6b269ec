"""orbical inside other tools: callbacks of Lightning and of Hugging Face's Trainer, and of pytest.

Each module imports its tool, so import the one you need: `orbical.integrations.lightning`,
`orbical.integrations.transformers`. pytest loads `orbical.integrations.pytest_plugin` by itself.
"""

__all__: list[str] = []
