"""How far from the limit am I?"""
