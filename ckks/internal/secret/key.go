// Package secret holds what only the owner of data has: the secret key, and what needs it. The key never leaves this
// package; evaluation keys and ciphertexts made with it do.
package secret

import (
	"crypto/rand"
	"fmt"

	"github.com/tuneinsight/lattigo/v6/core/rlwe"
	"github.com/tuneinsight/lattigo/v6/ring"
	"github.com/tuneinsight/lattigo/v6/schemes/ckks"
	"github.com/tuneinsight/lattigo/v6/utils/sampling"

	"privet/ckks/internal/codec"
	"privet/ckks/internal/flood"
	set "privet/ckks/internal/params"
	"privet/ckks/internal/wire"
)

// Key is a fresh secret key: uniform ternary coefficients from the operating system's randomness.
type Key struct {
	params    ckks.Parameters
	secret    *rlwe.SecretKey
	generator *rlwe.KeyGenerator
	encoder   *ckks.Encoder
	// decryptions is how many ciphertexts this key still opens for others, refreshes how many it still refreshes: where it is for
	// runs of a model, in the run that has begun.
	decryptions, refreshes int
	// runs is how many runs may still begin, of so many results and refreshes each.
	runs, ofRun, refreshesOfRun int
}

// New makes a key.
func New(params ckks.Parameters) (*Key, error) {
	generator := rlwe.NewKeyGenerator(params)
	return &Key{
		params: params, secret: generator.GenSecretKeyNew(), generator: generator, encoder: codec.New(params),
		decryptions: set.Decryptions,
	}, nil
}

// ForRuns makes a key for an encrypted model, with a budget for so many runs of so many results and refreshes each.
func ForRuns(params ckks.Parameters, runs, results, refreshes int) (*Key, error) {
	made, err := New(params)
	if err == nil {
		made.decryptions, made.runs, made.ofRun, made.refreshesOfRun = 0, runs, results, refreshes
	}
	return made, err
}

// BeginRun begins a run, if the budget has another. What the one before has left is lost: refreshes at one point of a model carry more
// of the noise than those at another, and bounds on what they tell count each point once a run.
func (k *Key) BeginRun() bool {
	if k.runs == 0 {
		return false
	}
	k.runs--
	k.decryptions, k.refreshes = k.ofRun, k.refreshesOfRun
	return true
}

// Public is a public key that belongs to it.
func (k *Key) Public() *rlwe.PublicKey { return k.generator.GenPublicKeyNew(k.secret) }

// Relinearisation is the key that brings products up to a level back to two parts, as it is sent.
func (k *Key) Relinearisation(level int) []byte {
	made := k.generator.GenRelinearizationKeyNew(k.secret, compressed(level))
	return wire.AppendKey(nil, k.params, &made.EvaluationKey)
}

// Rotation is the key that rotates ciphertexts up to a level by so many slots, as it is sent.
func (k *Key) Rotation(slots, level int) []byte {
	made := k.generator.GenGaloisKeyNew(k.params.GaloisElement(slots), k.secret, compressed(level))
	return wire.AppendKey(nil, k.params, &made.EvaluationKey)
}

func compressed(level int) rlwe.EvaluationKeyParameters {
	return rlwe.EvaluationKeyParameters{LevelQ: &level, Compressed: true}
}

// Zero is an encryption of zero at a level, as it is sent: with it a server makes others that nobody can tell apart.
func (k *Key) Zero(level int) ([]byte, error) {
	made, err := k.zero(level)
	if err != nil {
		return nil, err
	}
	return wire.AppendSeeded(nil, k.params, made), nil
}

// Encrypt encrypts slots at the highest level, as it is sent. Encryption is under the secret key itself: less noise than
// under a public one, and half the bytes.
func (k *Key) Encrypt(slots []float64) ([]byte, error) {
	pt := ckks.NewPlaintext(k.params, k.params.MaxLevel())
	if err := k.encoder.Encode(slots, pt); err != nil {
		return nil, err
	}
	return k.Seal(pt)
}

// Seal encrypts a plaintext at its level, as it is sent; safe for several goroutines.
func (k *Key) Seal(pt *rlwe.Plaintext) ([]byte, error) {
	made, err := k.zero(pt.Level())
	if err != nil {
		return nil, err
	}
	k.params.RingQ().AtLevel(pt.Level()).Add(made.Body, pt.Value, made.Body)
	return wire.AppendSeeded(nil, k.params, made), nil
}

// zero is e - a s for an a that grows from a fresh seed, in NTT form.
func (k *Key) zero(level int) (wire.Seeded, error) {
	ringQ := k.params.RingQ().AtLevel(level)
	made := wire.Seeded{Body: ringQ.NewPoly()}
	if _, err := rand.Read(made.Seed[:]); err != nil {
		return made, err
	}
	random := ringQ.NewPoly()
	if err := wire.Grow(made.Seed, k.params, random); err != nil {
		return made, err
	}
	source, err := sampling.NewPRNG()
	if err != nil {
		return made, err
	}
	noise, err := ring.NewSampler(source, ringQ, k.params.Xe(), false)
	if err != nil {
		return made, err
	}
	noise.Read(made.Body)
	ringQ.NTT(made.Body, made.Body)
	ringQ.MulCoeffsMontgomeryThenSub(random, k.secret.Value.Q, made.Body)
	return made, nil
}

// Decrypt gives the slots of a result of a period, at the default scale. Whoever learns decryptions of ciphertexts that it chose may find
// the key (Li and Micciancio, 2021): what this returns is for the owner alone.
func (k *Key) Decrypt(ct *rlwe.Ciphertext, period int) ([]float64, error) {
	ct.Scale = k.params.DefaultScale()
	slots := make([]float64, k.params.MaxSlots())
	pt := rlwe.NewDecryptor(k.params, k.secret).DecryptNew(ct)
	flood.Keep(k.params.RingQ().AtLevel(pt.Level()), pt.Value, period)
	return slots, k.encoder.Decode(pt, slots)
}

// Refresh decrypts a value that whoever evaluates has masked, adds noise to the coefficients that it has, and encrypts it at
// a level, as it is sent. It counts.
func (k *Key) Refresh(ct *rlwe.Ciphertext, level int, noise *flood.Noise) ([]byte, error) {
	if k.refreshes == 0 {
		return nil, fmt.Errorf("the budget of refreshes under this key is spent")
	}
	k.refreshes--
	masked := rlwe.NewDecryptor(k.params, k.secret).DecryptNew(ct)
	from, to := k.params.RingQ().AtLevel(ct.Level()), k.params.RingQ().AtLevel(level)
	from.INTT(masked.Value, masked.Value)
	pt := ckks.NewPlaintext(k.params, level)
	pt.Value.Copy(flood.Lift(from, masked.Value, to, noise.Period))
	if err := noise.AddSparse(to, pt.Value); err != nil {
		return nil, err
	}
	return k.Seal(pt)
}

// Open decrypts a result for somebody else, flooded, and only the coefficients that it has. It counts.
func (k *Key) Open(ct *rlwe.Ciphertext, noise *flood.Noise) ([]byte, error) {
	if k.decryptions == 0 {
		return nil, fmt.Errorf("the budget of decryptions under this key is spent")
	}
	k.decryptions--
	pt := rlwe.NewDecryptor(k.params, k.secret).DecryptNew(ct)
	ringQ := k.params.RingQ().AtLevel(pt.Level())
	if err := noise.Add(ringQ, pt.Value); err != nil {
		return nil, err
	}
	ringQ.INTT(pt.Value, pt.Value)
	return wire.AppendOpened(nil, k.params, noise.Period, pt.Value), nil
}
