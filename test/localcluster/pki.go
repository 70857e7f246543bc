// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// signClient returns a certificate and key for a user, signed by the authority in these files. It is good for a year.
func signClient(authorityFile, keyFile, user, group string) (certificate, key []byte, err error) {
	authorities, err := cert.CertsFromFile(authorityFile)
	if err != nil {
		return nil, nil, err
	}
	read, err := keyutil.PrivateKeyFromFile(keyFile)
	if err != nil {
		return nil, nil, err
	}
	signer, ok := read.(crypto.Signer)
	if !ok {
		return nil, nil, errors.New("the key of the authority cannot sign")
	}
	if key, err = keyutil.MakeEllipticPrivateKeyPEM(); err != nil {
		return nil, nil, err
	}
	own, err := keyutil.ParsePrivateKeyPEM(key)
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: user},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(365 * 24 * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	if group != "" {
		template.Subject.Organization = []string{group}
	}
	encoded, err := x509.CreateCertificate(rand.Reader, template, authorities[0], own.(crypto.Signer).Public(), signer)
	if err != nil {
		return nil, nil, err
	}
	certificate, err = cert.EncodeCertificates(&x509.Certificate{Raw: encoded})
	return certificate, key, err
}

// writeIdentity writes a kubeconfig for a program, with a certificate for a user in a group, which may be empty.
func (c *supervisor) writeIdentity(file, server, user, group string) error {
	if exists(file) {
		return nil
	}
	certificate, key, err := signClient(c.kwokPath("pki", "ca.crt"), c.kwokPath("pki", "ca.key"), user, group)
	if err != nil {
		return fmt.Errorf("the certificate of %s: %w", user, err)
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["local"] = &clientcmdapi.Cluster{Server: server, CertificateAuthority: c.kwokPath("pki", "ca.crt")}
	config.AuthInfos[user] = &clientcmdapi.AuthInfo{ClientCertificateData: certificate, ClientKeyData: key}
	config.Contexts["local"] = &clientcmdapi.Context{Cluster: "local", AuthInfo: user}
	config.CurrentContext = "local"
	return clientcmd.WriteToFile(*config, file)
}
