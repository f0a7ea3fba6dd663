package layers

import (
	"math/bits"

	"github.com/tuneinsight/lattigo/v6/ring"
)

// plaintext is an encoded diagonal, or a part of an encrypted one, in NTT form, one limb for each prime.
type plaintext []limb

// limb has the residues of one prime, in as little room as its size allows. Below 2^31 they take four bytes, and their
// products are added up in 64 bits with few reductions. Others are in Montgomery form, below 2^40 in five bytes.
type limb struct {
	low  []uint32
	high []uint8
	wide []uint64
}

// Sizes in bits of primes whose limbs take four and five bytes: 2^(64 - 2 * narrowBits) products fit 64 bits.
const (
	narrowBits = 31
	middleBits = 40
)

func isNarrow(s *ring.SubRing) bool { return bits.Len64(s.Modulus) <= narrowBits }

// pack takes over a polynomial in NTT form.
func pack(ringQ *ring.Ring, poly ring.Poly) plaintext {
	made := make(plaintext, ringQ.Level()+1)
	for i, s := range ringQ.SubRings[:ringQ.Level()+1] {
		made[i] = packLimb(s, poly.Coeffs[i])
	}
	return made
}

func packLimb(s *ring.SubRing, residues []uint64) limb {
	var made limb
	if !isNarrow(s) {
		wide := make([]uint64, len(residues))
		s.MForm(residues, wide)
		if residues = wide; bits.Len64(s.Modulus) > middleBits {
			made.wide = wide
			return made
		}
		made.high = make([]uint8, len(residues))
		for j, residue := range residues {
			made.high[j] = uint8(residue >> 32)
		}
	}
	made.low = make([]uint32, len(residues))
	for j, residue := range residues {
		made.low[j] = uint32(residue)
	}
	return made
}

// unpacked are a limb's residues in Montgomery form, in `room` unless they lie unpacked.
func (l limb) unpacked(room []uint64) []uint64 {
	if l.wide != nil {
		return l.wide
	}
	low, high := l.low[:len(room)], l.high[:len(room)]
	for j := range room {
		room[j] = uint64(high[j])<<32 | uint64(low[j])
	}
	return room
}

// accumulate adds the products of plaintexts and polynomials, pairwise, to sums; all values below their prime.
func accumulate(ringQ *ring.Ring, plaintexts []plaintext, polys []ring.Poly, sums ring.Poly) {
	room := make([]uint64, ringQ.N())
	for i, s := range ringQ.SubRings[:ringQ.Level()+1] {
		sum := sums.Coeffs[i]
		most := 1<<max(1, 64-2*bits.Len64(s.Modulus)) - 1
		for at, p := range plaintexts {
			if !isNarrow(s) {
				s.MulCoeffsMontgomeryThenAdd(p[i].unpacked(room), polys[at].Coeffs[i], sum)
				continue
			}
			multiplyAdd(sum, p[i].low, polys[at].Coeffs[i])
			if (at+1)%most == 0 {
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
