package layers

import (
	"math/bits"

	"github.com/tuneinsight/lattigo/v6/ring"
)

// plaintext is an encoded diagonal in NTT form, one limb for each prime. Limbs of primes below 2^32 take half the room,
// and their products are added up in 64 bits with few reductions; others are in Montgomery form.
type plaintext struct {
	narrow [][]uint32
	wide   [][]uint64
}

// narrowBits is the size of primes whose limbs are narrow: 2^(64 - 2 * narrowBits) products fit 64 bits.
const narrowBits = 30

func isNarrow(s *ring.SubRing) bool { return bits.Len64(s.Modulus) <= narrowBits }

// pack takes over a polynomial in NTT form.
func pack(ringQ *ring.Ring, poly ring.Poly) plaintext {
	made := plaintext{make([][]uint32, ringQ.Level()+1), make([][]uint64, ringQ.Level()+1)}
	for i, s := range ringQ.SubRings[:ringQ.Level()+1] {
		limb := poly.Coeffs[i]
		if !isNarrow(s) {
			made.wide[i] = make([]uint64, len(limb))
			s.MForm(limb, made.wide[i])
			continue
		}
		made.narrow[i] = make([]uint32, len(limb))
		for j, coefficient := range limb {
			made.narrow[i][j] = uint32(coefficient)
		}
	}
	return made
}

// bytes is the room that a plaintext takes.
func (p plaintext) bytes() int {
	total := 0
	for i := range p.narrow {
		total += 4*len(p.narrow[i]) + 8*len(p.wide[i])
	}
	return total
}

// accumulate adds the products of plaintexts and polynomials, pairwise, to sums; all values below their prime.
func accumulate(ringQ *ring.Ring, plaintexts []plaintext, polys []ring.Poly, sums ring.Poly) {
	for i, s := range ringQ.SubRings[:ringQ.Level()+1] {
		sum := sums.Coeffs[i]
		most := 1
		if isNarrow(s) {
			most = 1<<(64-2*narrowBits) - 1
		}
		for at, p := range plaintexts {
			if isNarrow(s) {
				multiplyAdd(sum, p.narrow[i], polys[at].Coeffs[i])
			} else {
				s.MulCoeffsMontgomeryThenAdd(p.wide[i], polys[at].Coeffs[i], sum)
			}
			if isNarrow(s) && (at+1)%most == 0 {
				s.Reduce(sum, sum)
			}
		}
		s.Reduce(sum, sum)
	}
}

func multiplyAdd(sum []uint64, a []uint32, b []uint64) {
	a, b = a[:len(sum)], b[:len(sum)]
	for j := range sum {
		sum[j] += uint64(a[j]) * b[j]
	}
}
