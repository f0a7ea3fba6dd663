//go:build !js

package channel

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
)

// MaxStatement bounds a statement in bytes, with its certificates.
const MaxStatement = 16 << 10

// statement is a message that a party signed with the key of its certificate, for parties that it has no connection to.
type statement struct {
	Message      []byte   `json:"message"`
	Signature    []byte   `json:"signature"`
	Certificates [][]byte `json:"certificates"`
}

// Signer is who signed a statement: the common name and the SHA-256 of its certificate.
type Signer struct{ Name, Fingerprint string }

// signed is what a signature is of. The purpose keeps it apart from other statements and from what TLS signs.
func signed(purpose string, message []byte) []byte {
	text := append([]byte("privet statement\x00"), binary.LittleEndian.AppendUint64(nil, uint64(len(purpose)))...)
	return append(append(text, purpose...), message...)
}

// Sign makes a statement for a purpose.
func (c *Credentials) Sign(purpose string, message []byte) ([]byte, error) {
	key, ok := c.certificate.PrivateKey.(crypto.Signer)
	if !ok {
		return nil, errors.New("the key of this party's certificate cannot sign")
	}
	text, options := signed(purpose, message), crypto.SignerOpts(crypto.SHA256)
	if _, plain := key.Public().(ed25519.PublicKey); plain {
		options = crypto.Hash(0)
	} else {
		digest := sha256.Sum256(text)
		text = digest[:]
	}
	signature, err := key.Sign(rand.Reader, text, options)
	if err != nil {
		return nil, err
	}
	made, err := json.Marshal(statement{message, signature, c.certificate.Certificate})
	if err == nil && len(made) > MaxStatement {
		err = fmt.Errorf("the certificates of this party take a statement of %d bytes, more than %d", len(made), MaxStatement)
	}
	return made, err
}

// Verify gives the message of a statement for a purpose and who signed it, if its certificate is of the trusted authority.
func (c *Credentials) Verify(purpose string, data []byte) ([]byte, Signer, error) {
	var s statement
	if len(data) > MaxStatement || json.Unmarshal(data, &s) != nil || len(s.Certificates) == 0 {
		return nil, Signer{}, Misbehaviour("a statement of a party has the wrong form")
	}
	var chain []*x509.Certificate
	for _, raw := range s.Certificates {
		certificate, err := x509.ParseCertificate(raw)
		if err != nil {
			return nil, Signer{}, Misbehaviour("a statement comes with what is no certificate")
		}
		chain = append(chain, certificate)
	}
	between := x509.NewCertPool()
	for _, certificate := range chain[1:] {
		between.AddCert(certificate)
	}
	_, err := chain[0].Verify(x509.VerifyOptions{
		Roots: c.trust, Intermediates: between, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	if err != nil {
		return nil, Signer{}, Misbehaviour(fmt.Sprintf("a statement comes with a certificate that is not trusted: %v", err))
	}
	algorithm := x509.ECDSAWithSHA256
	switch chain[0].PublicKey.(type) {
	case ed25519.PublicKey:
		algorithm = x509.PureEd25519
	case *rsa.PublicKey:
		algorithm = x509.SHA256WithRSA
	case *ecdsa.PublicKey:
	}
	if chain[0].CheckSignature(algorithm, signed(purpose, s.Message), s.Signature) != nil {
		return nil, Signer{}, Misbehaviour("a statement is not signed by who it names")
	}
	digest := sha256.Sum256(s.Certificates[0])
	return s.Message, Signer{commonName(chain[0]), hex.EncodeToString(digest[:])}, nil
}
