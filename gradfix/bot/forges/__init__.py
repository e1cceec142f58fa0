"""The forges, each behind the same small protocol (:mod:`gradfix.bot.forges.protocol`)."""
