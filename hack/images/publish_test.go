// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"io"
	"log"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/jobset-apiserver/jobset-apiserver/hack/images/chart"
	"github.com/jobset-apiserver/jobset-apiserver/hack/images/checksums"
	"github.com/jobset-apiserver/jobset-apiserver/hack/images/oci"
	"github.com/jobset-apiserver/jobset-apiserver/hack/images/signature"
)

// expectPublication publishes a signed release to a registry, and compares what the registry has with the release.
func expectPublication(t *testing.T, b *bundle, key *signature.Key, public string) {
	t.Helper()
	host := serve(t, registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	prefix := host + "/team"
	p := &publication{
		Release: b.Output, Output: filepath.Join(t.TempDir(), "published"), Registry: oci.Registry{Prefix: prefix + "/"}, Images: b.Images, Key: key,
	}
	var out bytes.Buffer
	if err := p.publish(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"helm install jobset oci://" + prefix + "/charts/jobset-apiserver --version 1.2.3\n", "kubectl apply --server-side -f " + p.Output + "/install.yaml\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the output must contain %q, is\n%s", want, out.String())
		}
	}
	expectManifests(t, p.Output, prefix)
	if _, _, err := verifyDirectory(p.Output, public); err != nil {
		t.Error(err)
	}
	d, err := readDigests(filepath.Join(b.Output, imagesDir, digestsFile))
	if err != nil {
		t.Fatal(err)
	}
	for program, digest := range d.Images {
		if _, err := remote.Index(reference(t, prefix+"/"+program+"@"+digest)); err != nil {
			t.Errorf("the registry must have the image that the manifests name: %v", err)
		}
	}
	expectChart(t, prefix, d)

	pulled := pull(t, prefix+"/"+releasesRepository+":v1.2.3")
	if _, _, err := verifyDirectory(pulled, public); err != nil {
		t.Errorf("what is pulled must be what was signed: %v", err)
	}
	expectManifests(t, pulled, prefix)
	plugins, err := checksums.Read(pull(t, prefix+"/"+pluginRepository+":v1.2.3"))
	if err != nil {
		t.Fatal(err)
	}
	want, err := checksums.Read(filepath.Join(b.Output, pluginDir))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, plugins); diff != "" {
		t.Errorf("archives of the plugin (-want +got):\n%s", diff)
	}
}

func reference(t *testing.T, text string) name.Reference {
	t.Helper()
	ref, err := name.ParseReference(text)
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

// expectChart checks that the registry has the chart in the form that Helm pulls, with the images in it.
func expectChart(t *testing.T, prefix string, d digests) {
	t.Helper()
	image, err := remote.Image(reference(t, prefix+"/"+chartsRepository+":1.2.3"))
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := image.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	if manifest.Config.MediaType != chartConfigType || len(manifest.Layers) != 1 || manifest.Layers[0].MediaType != chartContentType {
		t.Fatalf("the manifest is %+v", manifest)
	}
	config, err := image.RawConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	var metadata chart.Metadata
	if err := json.Unmarshal(config, &metadata); err != nil {
		t.Fatal(err)
	}
	want := chart.Metadata{Name: "jobset-apiserver", Version: "1.2.3", AppVersion: "v1.2.3", Description: metadata.Description, Annotations: map[string]string{
		"artifacthub.io/license": "Apache-2.0", "jobset-apiserver.io/registry": prefix,
		"jobset-apiserver.io/digest.jobset-apiserver": d.Images["jobset-apiserver"], "jobset-apiserver.io/digest.jobset-controller": d.Images["jobset-controller"],
	}}
	if diff := cmp.Diff(want, metadata); diff != "" {
		t.Errorf("metadata of the chart (-want +got):\n%s", diff)
	}
	c, err := chart.Unpack(blob(t, image, manifest.Layers[0]))
	if err != nil {
		t.Fatal(err)
	}
	packed, err := c.Metadata()
	if err != nil || !cmp.Equal(packed, metadata) {
		t.Errorf("Chart.yaml is %+v (%v), want %+v", packed, err, metadata)
	}
}

func blob(t *testing.T, image v1.Image, layer v1.Descriptor) []byte {
	t.Helper()
	content, err := image.LayerByDigest(layer.Digest)
	if err != nil {
		t.Fatal(err)
	}
	r, err := content.Compressed()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	out, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// pull writes the files of an artifact into a directory, as oras does.
func pull(t *testing.T, artifact string) string {
	t.Helper()
	image, err := remote.Image(reference(t, artifact))
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := image.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, layer := range manifest.Layers {
		file := filepath.Join(dir, layer.Annotations["org.opencontainers.image.title"])
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		writeFile(t, file, string(blob(t, image, layer)))
	}
	return dir
}

// smallRelease writes a directory that looks like a release, and its checksums.
func smallRelease(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{imagesDir, manifestsDir, chartDir} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	c, err := chart.Load(filepath.Join(root, chartSource))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write(filepath.Join(dir, chartDir)); err != nil {
		t.Fatal(err)
	}
	all := map[string]string{
		"images/digests.txt": "sha256:" + strings.Repeat("a", 64) + "  jobset-apiserver:v1.2.3\n",
		"install.yaml":       "image: registry.invalid/jobset-apiserver\n",
	}
	for name, content := range files {
		all[name] = content
	}
	for name, content := range all {
		writeFile(t, filepath.Join(dir, name), content)
	}
	if err := checksums.Write(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestPublishMistakes(t *testing.T) {
	key, _ := keys(t)
	changed := smallRelease(t, nil)
	writeFile(t, filepath.Join(changed, "install.yaml"), "image: example.com/another\n")
	signed := signedRelease(t, key)
	tests := map[string]struct{ release, want string }{
		"a file was changed":                {changed, "install.yaml: was changed, its checksum is "},
		"a signed release without a key":    {signed, "the release is signed: set SIGNING_KEY, so that the manifests with the registry are signed, too"},
		"manifests with a registry already": {smallRelease(t, map[string]string{"install.yaml": "image: example.com/a\n"}), "install.yaml must have images of registry.invalid"},
		"a chart that is none":              {smallRelease(t, map[string]string{"chart/jobset-apiserver-0.1.0.tgz": "x"}), "reading the archive of the chart: "},
		"images that are missing":           {smallRelease(t, nil), "jobset-apiserver.tar: no such file or directory"},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			p := &publication{Release: test.release, Output: filepath.Join(t.TempDir(), "published"), Registry: oci.Registry{Prefix: "registry.invalid"}, Images: imagePrograms}
			if err := p.publish(t.Context(), io.Discard); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error is %v, want one with %q", err, test.want)
			}
		})
	}
}

func TestVerifyMistakes(t *testing.T) {
	key, public := keys(t)
	_, other := keys(t)
	seal := func(t *testing.T, key *signature.Key) string {
		dir := smallRelease(t, nil)
		if err := sealDirectory(dir, "v1.2.3", key, io.Discard); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	lie := seal(t, key)
	changeWithChecksum(t, lie)
	changed := seal(t, key)
	writeFile(t, filepath.Join(changed, "install.yaml"), "image: example.com/another\n")
	tests := map[string]struct{ dir, key, want string }{
		"nothing was changed":             {seal(t, key), public, ""},
		"a file was changed":              {changed, public, "install.yaml: was changed, its checksum is "},
		"a file and its checksum":         {lie, public, "SHA256SUMS or its signature was changed: the signature does not match the public key "},
		"a release that is not signed":    {seal(t, nil), public, "SHA256SUMS is not signed: "},
		"a release that another signed":   {seal(t, key), other, "SHA256SUMS is signed by the key "},
		"a directory that has no release": {t.TempDir(), public, "SHA256SUMS: no such file or directory"},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			err := run(t.Context(), []string{"verify", "--release=" + test.dir, "--public-key=" + test.key}, io.Discard)
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("error is %v, want one with %q", err, test.want)
			}
		})
	}
}
