//go:build !js

package channel

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"
	"time"
)

// issue makes a certificate from a template, by the given issuer or by itself.
func issue(t *testing.T, template, issuer *x509.Certificate, key, signer *ecdsa.PrivateKey) *x509.Certificate {
	t.Helper()
	template.SerialNumber = big.NewInt(1)
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	if issuer == nil {
		issuer = template
	}
	der, err := x509.CreateCertificate(rand.Reader, template, issuer, key.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	made, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func TestOnlyAuthoritiesAreAnchors(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	text := func(c *x509.Certificate) []byte {
		return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})
	}
	name := pkix.Name{CommonName: "alice"}
	authority := issue(t, &x509.Certificate{Subject: name, BasicConstraintsValid: true, IsCA: true, KeyUsage: x509.KeyUsageCertSign}, nil, key, key)
	if _, err := authorities(text(authority)); err != nil {
		t.Error(err)
	}
	bad := map[string][]byte{
		"no certificate":        nil,
		"not a certificate":     text(issue(t, &x509.Certificate{Subject: name}, nil, key, key)),
		"is not a certificate ": text(issue(t, &x509.Certificate{Subject: name, BasicConstraintsValid: true}, nil, key, key)),
		"may not sign":          text(issue(t, &x509.Certificate{Subject: name, BasicConstraintsValid: true, IsCA: true, KeyUsage: x509.KeyUsageDigitalSignature}, nil, key, key)),
		"certificate 2":         append(text(authority), text(issue(t, &x509.Certificate{Subject: name}, nil, key, key))...),
		"cannot be read":        pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte{1, 2}}),
	}
	for why, anchors := range bad {
		if _, err := authorities(anchors); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%q: %v", why, err)
		}
	}
}

// TestACertificateHasOneNameForAllParts gives a certificate two common names: the relay, and the servers of other suites, know the peer by
// the first. The control: crypto/x509 tells the last.
func TestACertificateHasOneNameForAllParts(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	common := asn1.ObjectIdentifier{2, 5, 4, 3}
	subject := pkix.Name{ExtraNames: []pkix.AttributeTypeAndValue{{Type: common, Value: "mallory"}, {Type: common, Value: "privet member 0"}}}
	made := issue(t, &x509.Certificate{Subject: subject}, nil, key, key)
	if made.Subject.CommonName != "privet member 0" {
		t.Errorf("crypto/x509 tells %q", made.Subject.CommonName)
	}
	if name := commonName(made); name != "mallory" {
		t.Errorf("it is known as %q", name)
	}
	if name := commonName(issue(t, &x509.Certificate{}, nil, key, key)); name != "" {
		t.Errorf("no name is %q", name)
	}
}
