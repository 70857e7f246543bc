// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"bytes"
	"context"
	"encoding/json"
	"os"

	certutil "k8s.io/client-go/util/cert"
	"k8s.io/klog/v2"
)

// trustedAuthorities decide whose certificates are believed: client certificates name their holder, and the holder of a
// front proxy's certificate names anybody in headers.
type trustedAuthorities struct {
	client, requestHeader []byte
	// allowedNames are the common names of front proxies. When empty, every certificate of the authority is one.
	allowedNames []string
}

// trustedAuthorities returns the authorities that the flags name. For a flag that is not set, it returns the authority of the main cluster.
func (o *Options) trustedAuthorities(found map[string]string) (trustedAuthorities, error) {
	authentication := o.Recommended.Authentication
	t := trustedAuthorities{client: []byte(found["client-ca-file"]), requestHeader: []byte(found["requestheader-client-ca-file"])}
	if names := found["requestheader-allowed-names"]; names != "" {
		if err := json.Unmarshal([]byte(names), &t.allowedNames); err != nil {
			return t, flagError("authentication-kubeconfig", "reading requestheader-allowed-names in the configmap "+
				"extension-apiserver-authentication in kube-system: %w: correct the flags of kube-apiserver", err)
		}
	}
	var err error
	if file := authentication.ClientCert.ClientCA; file != "" {
		if t.client, err = os.ReadFile(file); err != nil {
			return t, wrapFlagError("client-ca-file", err, "give a file that this process can read")
		}
	}
	if file := authentication.RequestHeader.ClientCAFile; file != "" {
		t.allowedNames = authentication.RequestHeader.AllowedNames
		if t.requestHeader, err = os.ReadFile(file); err != nil {
			return t, wrapFlagError("requestheader-client-ca-file", err, "give a file that this process can read")
		}
	}
	return t, nil
}

// check refuses what would let every holder of a client certificate act as anybody, and reports once that front proxies
// are not limited by name.
func (t trustedAuthorities) check(ctx context.Context) error {
	if len(t.requestHeader) == 0 || len(t.allowedNames) > 0 {
		return nil
	}
	if t.overlap() {
		return flagError("requestheader-allowed-names", "is empty, and the authority of front proxies also signs client certificates, so "+
			"every client could act as any user: set the names of the front proxies, here or in kube-apiserver's "+
			"--requestheader-allowed-names, or use two authorities")
	}
	klog.FromContext(ctx).Info("No names of front proxies are set, so every certificate of their authority may act as any user: set " +
		"--requestheader-allowed-names of kube-apiserver")
	return nil
}

// overlap reports whether a certificate is in both bundles. What cannot be parsed is left to the library, which reports it.
func (t trustedAuthorities) overlap() bool {
	clients, err := certutil.ParseCertsPEM(t.client)
	if err != nil {
		return false
	}
	proxies, err := certutil.ParseCertsPEM(t.requestHeader)
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
