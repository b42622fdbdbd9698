"""Integer and support codes that several operators share: Elias, Rice, enumerative and arithmetic."""
