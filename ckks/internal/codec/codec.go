// Package codec puts real numbers into the slots of plaintexts and reads them back.
package codec

import "github.com/tuneinsight/lattigo/v6/schemes/ckks"

// New is an encoder in double precision, whatever the scale: Lattigo would take slow large numbers for scales beyond 2^53,
// and more than double precision is lost in the noise of any ciphertext.
func New(params ckks.Parameters) *ckks.Encoder { return ckks.NewEncoder(params, 53) }
