package wire

import (
	"crypto/aes"
	"crypto/cipher"

	"github.com/tuneinsight/lattigo/v6/utils/sampling"
)

// Stream is what random polynomials that all parties know grow from: AES in counter mode under a seed, taken as an ideal
// cipher. Lattigo's generator is a hash, and several times slower: half of the time that a key takes was spent in it.
func Stream(seed [SeedBytes]byte) (sampling.PRNG, error) {
	block, err := aes.NewCipher(seed[:])
	if err != nil {
		return nil, err
	}
	return counter{cipher.NewCTR(block, make([]byte, aes.BlockSize))}, nil
}

// counter reads the key stream of a cipher.
type counter struct{ cipher.Stream }

func (c counter) Read(into []byte) (int, error) {
	clear(into)
	c.XORKeyStream(into, into)
	return len(into), nil
}
