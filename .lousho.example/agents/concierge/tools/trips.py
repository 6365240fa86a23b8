"""Weather and day trips, made up."""

from typing import Any

from lousho_cli import tool

WEATHER = {
    "london": ("rain", 14),
    "bergen": ("heavy rain", 9),
    "oslo": ("snow", -2),
    "reykjavik": ("storm", 4),
    "paris": ("cloudy", 18),
    "porto": ("clear", 22),
}


@tool
def get_weather(place: str = "Lisbon") -> dict[str, Any]:
    """Get the weather forecast for a place.

    Args:
        place: A town.
    """
    forecast, high = WEATHER.get(place.lower(), ("sunny", 26))
    return {"place": place, "forecast": forecast, "high_c": high}


@tool
def plan_outdoors(place: str = "Lisbon") -> dict[str, Any]:
    """Plan a day in the open air, for dry weather.

    Args:
        place: A town.
    """
    return {
        "place": place,
        "plan": [
            "10:00 a walk through the old town",
            "12:30 a picnic in the park",
            "15:00 a boat trip along the shore",
            "19:00 sunset from the viewpoint",
        ],
        "bring": "a hat and sun cream",
    }


@tool
def plan_indoors(place: str = "Lisbon") -> dict[str, Any]:
    """Plan a day under a roof, for wet weather.

    Args:
        place: A town.
    """
    return {
        "place": place,
        "plan": [
            "10:00 the city museum",
            "12:30 lunch in the covered market",
            "15:00 the aquarium",
            "19:00 a concert",
        ],
        "bring": "an umbrella for the way",
    }
