"""The requests that the demo sends and the README shows; knows nothing of how they are sent.

What is right was settled by reading the texts, before any model was asked.
"""

DECISION = {
    "id": "shop",
    "state": "The shop opens at nine and closes at six. It is five in the afternoon.",
    "question": "Is the shop open?",
    "options": [
        {"id": "open", "description": "The evidence establishes that the shop is open"},
        {"id": "closed", "description": "The evidence establishes that the shop is closed"},
        {"id": "unknown", "description": "The evidence does not establish either"},
    ],
}

# It ends in a smiley: the end of a state that a token may reach across (contract INV-7).
TRANSCRIPT = {
    "messages": [
        {"role": "user", "content": "Hello! My parcel 4711 was due on Monday. Where is it?"},
        {"role": "assistant", "content": "It left the depot today and arrives tomorrow by noon."},
        {"role": "user", "content": "Can it go to my neighbour? I am at work until five."},
        {"role": "assistant", "content": "Yes. I have changed the delivery to number 12."},
        {"role": "user", "content": "Perfect, that helps a lot :)"},
    ]
}

_YES_NO = [{"id": "yes", "description": "Yes"}, {"id": "no", "description": "No"}]

SHARED = {
    "state": TRANSCRIPT,
    "decisions": [
        {"id": "resolved", "question": "Is the customer's request resolved?", "options": _YES_NO},
        {"id": "late", "question": "Was the parcel late?", "options": _YES_NO},
        {"id": "refund", "question": "Does the customer ask for a refund?", "options": _YES_NO},
        {"id": "human", "question": "Does a human need to take over?", "options": _YES_NO},
        {"id": "address", "question": "Was the place of delivery changed?", "options": _YES_NO},
        {"id": "private", "question": "Does a message hold a phone number?", "options": _YES_NO},
        {
            "id": "mood",
            "question": "What is the customer's mood in the last message?",
            "options": [
                {"id": "pleased", "description": "Pleased"},
                {"id": "neutral", "description": "Neutral"},
                {"id": "annoyed", "description": "Annoyed"},
            ],
        },
        {
            "id": "topic",
            "question": "What is the conversation about?",
            "options": [
                {"id": "delivery", "description": "A delivery"},
                {"id": "payment", "description": "A payment"},
                {"id": "account", "description": "An account"},
                {"id": "other", "description": "Something else"},
            ],
        },
    ],
}

RIGHT = {
    "shop": "open",
    "resolved": "yes",
    "late": "yes",
    "refund": "no",
    "human": "no",
    "address": "yes",
    "private": "no",
    "mood": "pleased",
    "topic": "delivery",
}
"""The right option of each decision."""
