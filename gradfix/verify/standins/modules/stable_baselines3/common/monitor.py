"""A wrapper that counts episodes."""

from ....environments import RecordEpisodeStatistics

Monitor = ResultsWriter = RecordEpisodeStatistics
