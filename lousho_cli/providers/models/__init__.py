"""Real models, each named `provider:model`, over the model classes of pydantic-ai.

    catalog         the providers there are: their extra, their keys, what they allow in a call id
    servers         what `[providers.NAME]` in a config.toml says
    lookup          from a name to a model that can be asked; nothing heavy is imported yet
    discovery       which model this machine has, when none is named
    model           the provider that the engine asks
    clients         the library's model of a provider, one per event loop
    conversation    our messages as the library's, kept from request to request
    content, calls, parts    the pieces of a message
    answer          the library's turn as ours
    asking          how it is asked: settings, tools, the shape of the answer
    failures        what went wrong, without any secret

The library and the clients of the providers are imported when a model is asked for the first time.
"""
