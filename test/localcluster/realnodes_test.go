// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"crypto/x509"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

func TestNumberOfRealNodes(t *testing.T) {
	for value, want := range map[string]string{
		"two": `CLUSTER_REAL_NODES: "two" must be a number from 0 to 4`,
		"5":   `CLUSTER_REAL_NODES: "5" must be a number from 0 to 4`,
		"4":   "",
	} {
		s, err := readSettings(t.TempDir(), func(variable string) string { return map[string]string{"CLUSTER_REAL_NODES": value}[variable] })
		if got := message(err); got != want {
			t.Errorf("%s: %q, want %q", value, got, want)
		}
		if want == "" && s.realNodes != 4 {
			t.Errorf("%d real nodes", s.realNodes)
		}
	}
}

func TestComponents(t *testing.T) {
	for value, want := range map[string]string{
		"some":   `CLUSTER_COMPONENTS: "some" must be all, none or images`,
		"images": "CLUSTER_COMPONENTS: images are for real nodes: set CLUSTER_REAL_NODES",
		"none":   "",
	} {
		_, err := readSettings(t.TempDir(), func(variable string) string { return map[string]string{"CLUSTER_COMPONENTS": value}[variable] })
		if got := message(err); got != want {
			t.Errorf("%s: %q, want %q", value, got, want)
		}
	}
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// TestNetworksAreApart checks that no address is of two nodes or of two clusters.
func TestNetworksAreApart(t *testing.T) {
	var ranges []netip.Prefix
	for slot := range slots {
		n := &network{slot: slot}
		texts := []string{n.host() + "/32", n.services()}
		for i := 1; i <= mostRealNodes; i++ {
			texts = append(texts, n.router(i)+"/24", n.pods(i))
			if len(n.namespace(i)) > 15 {
				t.Errorf("%s is too long for the name of a link", n.namespace(i))
			}
			if address := netip.MustParseAddr(n.nodeAddress(i)); !netip.MustParsePrefix(n.router(i) + "/24").Contains(address) {
				t.Errorf("%s is not in the range of its router", address)
			}
		}
		for _, text := range texts {
			next := netip.MustParsePrefix(text)
			for _, other := range ranges {
				if other.Overlaps(next) {
					t.Errorf("%s and %s overlap", other, next)
				}
			}
			ranges = append(ranges, next)
		}
		if !netip.MustParsePrefix(n.allPods()).Contains(netip.MustParsePrefix(n.pods(mostRealNodes)).Addr()) || !netip.MustParsePrefix(n.services()).Contains(netip.MustParseAddr(n.kubernetes())) {
			t.Errorf("slot %d: the ranges of all pods and Services lack addresses", slot)
		}
	}
}

func TestIdentitiesOfNodes(t *testing.T) {
	authority, key, err := cert.GenerateSelfSignedCertKey("authority", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	// The authority is the second certificate that is returned.
	certificates, err := cert.ParseCertsPEM(authority)
	if err != nil {
		t.Fatal(err)
	}
	leaf := certificates[0]
	encoded, err := cert.EncodeCertificates(leaf)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, content := range map[string][]byte{"ca.crt": encoded, "ca.key": key} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	signed, private, err := signClient(filepath.Join(dir, "ca.crt"), filepath.Join(dir, "ca.key"), "system:node:real-1", "system:nodes")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := keyutil.ParsePrivateKeyPEM(private); err != nil {
		t.Error(err)
	}
	client, err := cert.ParseCertsPEM(signed)
	if err != nil {
		t.Fatal(err)
	}
	if got := client[0].Subject.String(); got != "CN=system:node:real-1,O=system:nodes" {
		t.Errorf("the subject is %s", got)
	}
	if err := leaf.CheckSignature(x509.ECDSAWithSHA256, client[0].RawTBSCertificate, client[0].Signature); err != nil {
		if err := leaf.CheckSignature(x509.SHA256WithRSA, client[0].RawTBSCertificate, client[0].Signature); err != nil {
			t.Errorf("the certificate is not signed by the authority: %v", err)
		}
	}
}

// TestOverlayHasFlags checks that the flags of the environment reach the program that they are for.
func TestOverlayHasFlags(t *testing.T) {
	root := t.TempDir()
	s, err := gated(root, "")
	if err != nil {
		t.Fatal(err)
	}
	c := &supervisor{settings: s}
	overlay, err := c.overlay(c.path("install"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"resources":["../../artifacts/overlays/embedded"]`, `"newTag":"v0.0.0-local"`,
		`\"value\":\"--v=4\"}]","target":{"group":"apps","name":"jobset-apiserver"}`, `\"value\":\"--v=6\"}]","target":{"group":"apps","name":"jobset-controller"}`,
	} {
		if !strings.Contains(overlay, want) {
			t.Errorf("no %s in %s", want, overlay)
		}
	}
}

func TestMountsBelow(t *testing.T) {
	mounts, err := mountsBelow("")
	if err != nil || len(mounts) < 2 {
		t.Fatalf("%v, error %v", mounts, err)
	}
	below, err := mountsBelow("/proc/none")
	if err != nil || len(below) != 0 {
		t.Errorf("%v, error %v", below, err)
	}
}

// TestNamesOfImages checks that an image of a registry is found by all of its names, and no other image.
func TestNamesOfImages(t *testing.T) {
	const list = `REF                             TYPE                                      DIGEST      SIZE     PLATFORMS   LABELS
10.99.0.1:1/team/a@sha256:aa    application/vnd.oci.image.index.v1+json   sha256:aa   1.0 MiB  linux/amd64 io.cri-containerd.image=managed
localhost/jobset-tests:1        application/vnd.oci.image.index.v1+json   sha256:bb   1.0 MiB  linux/amd64 io.cri-containerd.image=managed
sha256:cc                       application/vnd.oci.image.index.v1+json   sha256:aa   1.0 MiB  linux/amd64 io.cri-containerd.image=managed
sha256:dd                       application/vnd.oci.image.index.v1+json   sha256:bb   1.0 MiB  linux/amd64 io.cri-containerd.image=managed
`
	if got, want := namesOfImages(list, "10.99.0.1:1/team"), []string{"10.99.0.1:1/team/a@sha256:aa", "sha256:cc"}; !slices.Equal(got, want) {
		t.Errorf("the names are %q, want %q", got, want)
	}
	if got := namesOfImages(list, "10.99.0.1:1/others"); len(got) > 0 {
		t.Errorf("the names are %q, want none", got)
	}
}
