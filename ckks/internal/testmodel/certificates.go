package testmodel

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Members is how many members of a cohort get certificates.
const Members = 5

// Certificates writes an authority's certificate and those of a server, a client and members of a cohort into a directory, in the form of
// `privet keys`.
func Certificates(directory string) error {
	authority, key, err := issue(nil, nil, "authority", 0)
	if err != nil {
		return err
	}
	if err := write(directory, "ca.pem", "CERTIFICATE", authority.Raw); err != nil {
		return err
	}
	usages := map[string]x509.ExtKeyUsage{"server": x509.ExtKeyUsageServerAuth, "client": x509.ExtKeyUsageClientAuth}
	for member := range Members {
		usages[fmt.Sprintf("member-%d", member)] = x509.ExtKeyUsageClientAuth
	}
	for role, usage := range usages {
		certificate, own, err := issue(authority, key, "privet "+strings.ReplaceAll(role, "-", " "), usage)
		if err != nil {
			return err
		}
		secret, err := x509.MarshalPKCS8PrivateKey(own)
		if err != nil {
			return err
		}
		if err := write(directory, role+".pem", "CERTIFICATE", certificate.Raw); err != nil {
			return err
		}
		if err := write(directory, role+".key", "PRIVATE KEY", secret); err != nil {
			return err
		}
	}
	return nil
}

func issue(parent *x509.Certificate, signer *ecdsa.PrivateKey, name string, usage x509.ExtKeyUsage) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(time.Hour),
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{usage}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	if parent == nil {
		template.IsCA, template.KeyUsage, template.ExtKeyUsage = true, x509.KeyUsageCertSign, nil
		template.IPAddresses = nil
		parent, signer = template, key
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		return nil, nil, err
	}
	certificate, err := x509.ParseCertificate(raw)
	return certificate, key, err
}

func write(directory, name, kind string, content []byte) error {
	text := pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content})
	return os.WriteFile(filepath.Join(directory, name), text, 0o600)
}
