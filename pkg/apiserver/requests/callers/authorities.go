// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package callers

import (
	"bytes"
	"context"
	"encoding/json"
	"os"

	genericoptions "k8s.io/apiserver/pkg/server/options"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/klog/v2"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/flagerror"
)

// Authorities decide whose certificates are believed: client certificates name their holder, and the holder of a
// front proxy's certificate names anybody in headers.
type Authorities struct {
	Client, RequestHeader []byte
	// AllowedNames are the common names of front proxies. When empty, every certificate of the authority is one.
	AllowedNames []string
}

// TrustedAuthorities returns the authorities that the flags name. For a flag that is not set, it returns the authority of the main cluster.
func TrustedAuthorities(authentication *genericoptions.DelegatingAuthenticationOptions, found map[string]string) (
	Authorities, error) {
	t := Authorities{Client: []byte(found["client-ca-file"]), RequestHeader: []byte(found["requestheader-client-ca-file"])}
	if names := found["requestheader-allowed-names"]; names != "" {
		if err := json.Unmarshal([]byte(names), &t.AllowedNames); err != nil {
			return t, flagerror.New("authentication-kubeconfig", "reading requestheader-allowed-names in the configmap "+
				"extension-apiserver-authentication in kube-system: %w: correct the flags of kube-apiserver", err)
		}
	}
	var err error
	if file := authentication.ClientCert.ClientCA; file != "" {
		if t.Client, err = os.ReadFile(file); err != nil {
			return t, flagerror.Wrap("client-ca-file", err, "give a file that this process can read")
		}
	}
	if file := authentication.RequestHeader.ClientCAFile; file != "" {
		t.AllowedNames = authentication.RequestHeader.AllowedNames
		if t.RequestHeader, err = os.ReadFile(file); err != nil {
			return t, flagerror.Wrap("requestheader-client-ca-file", err, "give a file that this process can read")
		}
	}
	return t, nil
}

// Check refuses what would let every holder of a client certificate act as anybody, and reports once that front proxies
// are not limited by name.
func (t Authorities) Check(ctx context.Context) error {
	if len(t.RequestHeader) == 0 || len(t.AllowedNames) > 0 {
		return nil
	}
	if t.overlap() {
		return flagerror.New("requestheader-allowed-names", "is empty, and the authority of front proxies also signs client certificates, so "+
			"every client could act as any user: set the names of the front proxies, here or in kube-apiserver's "+
			"--requestheader-allowed-names, or use two authorities")
	}
	klog.FromContext(ctx).Info("No names of front proxies are set, so every certificate of their authority may act as any user: set " +
		"--requestheader-allowed-names of kube-apiserver")
	return nil
}

// overlap reports whether a certificate is in both bundles. What cannot be parsed is left to the library, which reports it.
func (t Authorities) overlap() bool {
	clients, err := certutil.ParseCertsPEM(t.Client)
	if err != nil {
		return false
	}
	proxies, err := certutil.ParseCertsPEM(t.RequestHeader)
	if err != nil {
		return false
	}
	for _, client := range clients {
		for _, proxy := range proxies {
			if bytes.Equal(client.RawSubjectPublicKeyInfo, proxy.RawSubjectPublicKeyInfo) {
				return true
			}
		}
	}
	return false
}
