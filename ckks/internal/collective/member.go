package collective

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/tuneinsight/lattigo/v6/core/rlwe"
	"github.com/tuneinsight/lattigo/v6/multiparty"
	"github.com/tuneinsight/lattigo/v6/multiparty/mpckks"
	"github.com/tuneinsight/lattigo/v6/ring"
	"github.com/tuneinsight/lattigo/v6/ring/ringqp"
	"github.com/tuneinsight/lattigo/v6/schemes/ckks"

	"privet/ckks/internal/flood"
	"privet/ckks/internal/plan"
	"privet/ckks/internal/wire"
)

// Member is one party of a cohort with its share of the secret key, which never leaves it. It gives shares of public
// results; a coordinator, who needs no secret, adds up all members' shares.
type Member struct {
	params    ckks.Parameters
	common    *Common
	members   int
	secret    *rlwe.SecretKey
	ephemeral *rlwe.SecretKey
	// publicShare and firstShare are what this member sent, sums what came back, checked whether they go together.
	publicShare ringqp.Poly
	firstShare  *rlwe.GadgetCiphertext
	sums        *Sums
	checked     bool
	refresh     mpckks.RefreshProtocol
	// decryptions is how many results this member still helps to hand out under its key.
	decryptions int
}

// MaxMembers bounds a cohort.
const MaxMembers = 20

// NewMember makes a share of the key; `decryptions` is the budget of results under it.
func NewMember(params ckks.Parameters, common *Common, members, decryptions int) (*Member, error) {
	if members < 2 || members > MaxMembers {
		return nil, fmt.Errorf("a cohort has 2 to %d members, not %d", MaxMembers, members)
	}
	refresh, err := newRefresh(params)
	if err != nil {
		return nil, err
	}
	return &Member{
		params: params, common: common, members: members, decryptions: decryptions,
		refresh: refresh,
		secret:  rlwe.NewKeyGenerator(params).GenSecretKeyNew(),
	}, nil
}

// PublicKey is this member's share of the public key.
func (m *Member) PublicKey() ([]byte, error) {
	protocol := multiparty.NewPublicKeyGenProtocol(m.params)
	stream, err := m.common.stream(publicLabel)
	if err != nil {
		return nil, err
	}
	share := protocol.AllocateShare()
	protocol.GenShare(m.secret, protocol.SampleCRP(stream), &share)
	m.publicShare = share.Value
	return wire.AppendQP(nil, m.params, share.Value), nil
}

// RelinearisationFirst is this member's share of the first round for the relinearisation key.
func (m *Member) RelinearisationFirst() ([]byte, error) {
	protocol := multiparty.NewRelinearizationKeyGenProtocol(m.params)
	stream, err := m.common.stream(relinearisationLabel)
	if err != nil {
		return nil, err
	}
	ephemeral, first, _ := protocol.AllocateShare()
	protocol.GenShareRoundOne(m.secret, protocol.SampleCRP(stream), ephemeral, &first)
	m.ephemeral, m.firstShare = ephemeral, &first.GadgetCiphertext
	return wire.AppendGadget(nil, m.params, &first.GadgetCiphertext), nil
}

// RelinearisationSecond is this member's share of the second round, with the sum of all first shares. It is the member's secret
// times that sum and a little noise, so the members must have compared what they got.
func (m *Member) RelinearisationSecond() ([]byte, error) {
	if !m.checked {
		return nil, errUnchecked
	}
	return m.relinearisationSecond(m.sums.first)
}

func (m *Member) relinearisationSecond(sum *rlwe.GadgetCiphertext) ([]byte, error) {
	if m.ephemeral == nil {
		return nil, fmt.Errorf("the second round of the relinearisation key comes once, after the first")
	}
	protocol := multiparty.NewRelinearizationKeyGenProtocol(m.params)
	_, _, second := protocol.AllocateShare()
	protocol.GenShareRoundTwo(m.ephemeral, m.secret, multiparty.RelinearizationKeyGenShare{GadgetCiphertext: *sum}, &second)
	m.ephemeral = nil
	return wire.AppendGadget(nil, m.params, &second.GadgetCiphertext), nil
}

// Rotation is this member's share of the key that rotates ciphertexts up to a level by so many slots.
func (m *Member) Rotation(slots, level int) ([]byte, error) {
	protocol := multiparty.NewGaloisKeyGenProtocol(m.params)
	stream, err := m.common.stream(rotationLabel(slots))
	if err != nil {
		return nil, err
	}
	options := rlwe.EvaluationKeyParameters{LevelQ: &level}
	share := protocol.AllocateShare(options)
	element := m.params.GaloisElement(slots)
	if err := protocol.GenShare(m.secret, element, protocol.SampleCRP(stream, options), &share); err != nil {
		return nil, err
	}
	return wire.AppendGadget(nil, m.params, &share.GadgetCiphertext), nil
}

// Refresh is this member's share of a refresh, to a level, of a ciphertext of which only the second part matters. Masks
// hide the value statistically; `label` names this refresh and must be new. The value keeps the coefficients that it has as
// one with the noise's period, under that noise: of what the ciphertext's others hold nothing comes through.
func (m *Member) Refresh(label string, second ring.Poly, level int, noise *flood.Noise) ([]byte, error) {
	bound, err := refreshBound(m.params, m.members, second.Level())
	if err != nil {
		return nil, err
	}
	stream, err := m.common.stream(refreshLabel(label))
	if err != nil {
		return nil, err
	}
	ct := ckks.NewCiphertext(m.params, 1, second.Level())
	ct.Value[1] = second
	ct.LogDimensions = dimensions(noise.Period)
	share := m.refresh.AllocateShare(ct.Level(), level)
	crp := m.refresh.SampleCRP(level, stream)
	if err := m.refresh.GenShare(m.secret, bound, ct, crp, &share); err != nil {
		return nil, err
	}
	// Coefficients without a mask are made uniform, and nobody reads them.
	ringQ := m.params.RingQ()
	if err := flood.New(0, noise.Period).Add(ringQ.AtLevel(ct.Level()), share.EncToShareShare.Value); err != nil {
		return nil, err
	}
	if err := noise.AddSparse(ringQ.AtLevel(level), share.ShareToEncShare.Value); err != nil {
		return nil, err
	}
	data := wire.AppendPolys(nil, m.params, ct.Level(), share.EncToShareShare.Value)
	return wire.AppendPolys(data, m.params, level, share.ShareToEncShare.Value), nil
}

// Switch is this member's share of handing a result to a client: a part of the decryption, under this member's noise and
// encrypted under the client's public key. Noise of one member alone hides what there is to hide.
func (m *Member) Switch(client *rlwe.PublicKey, ct *rlwe.Ciphertext, noise *flood.Noise) ([]byte, error) {
	if m.decryptions == 0 {
		return nil, fmt.Errorf("the budget of decryptions under this key is spent: the cohort needs a new one")
	}
	m.decryptions--
	share := ckks.NewCiphertext(m.params, 1, ct.Level())
	if err := rlwe.NewEncryptor(m.params, client).EncryptZero(share); err != nil {
		return nil, err
	}
	ringQ := m.params.RingQ().AtLevel(ct.Level())
	ringQ.MulCoeffsMontgomeryThenAdd(ct.Value[1], m.secret.Value.Q, share.Value[0])
	if err := noise.Add(ringQ, share.Value[0]); err != nil {
		return nil, err
	}
	return wire.AppendPolys(nil, m.params, ct.Level(), share.Value[0], share.Value[1]), nil
}

const (
	publicLabel          = "public key"
	relinearisationLabel = "relinearisation key"
)

func rotationLabel(slots int) string { return fmt.Sprintf("rotation by %d", slots) }

func refreshLabel(label string) string { return "refresh " + label }

// dimensions are those of values that repeat after a period, a power of two.
func dimensions(period int) ring.Dimensions { return ring.Dimensions{Cols: bits.Len(uint(period)) - 1} }

// refreshBound is the size in bits of the masks of a refresh at a level, which exceed the scale by plan.MaskBits; it fails
// where the level has no room for masks of that size.
func refreshBound(params ckks.Parameters, members, level int) (uint, error) {
	bound := plan.MaskBits + params.LogDefaultScale()
	room := 0.0
	for _, prime := range params.Q()[:level+1] {
		room += math.Log2(float64(prime))
	}
	if needed := float64(bound) + math.Log2(float64(members)); room < needed {
		return 0, fmt.Errorf("a ciphertext at level %d cannot be refreshed: its masks need %.0f bits, and it has %.0f", level, needed, room)
	}
	return uint(bound), nil
}

// newRefresh makes the protocol, whose tables serve all refreshes.
//
// Ciphertexts count as having the default scale: masks are then re-encrypted as they are, and a refresh keeps the scale.
func newRefresh(params ckks.Parameters) (mpckks.RefreshProtocol, error) {
	const precision = 53 // of encodings, and a refresh without a transformation has none
	return mpckks.NewRefreshProtocol(params, precision, params.Xe())
}
