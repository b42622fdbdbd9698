"""Wrong claims, bounds, records, operators and transports on purpose: which of them would a run have noticed?"""
