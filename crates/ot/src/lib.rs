//! Oblivious transfer: base OT, OT extension, and the stock of correlations made from it.
