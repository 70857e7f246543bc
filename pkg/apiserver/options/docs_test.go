// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"bytes"
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/audit/policy"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/server/options/encryptionconfig"
	"k8s.io/apiserver/pkg/storage/value"
	tracingapi "k8s.io/component-base/tracing/api/v1"
	"sigs.k8s.io/yaml"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/apigroups"
)

// filesExample returns the Secret and the flags in the section of docs/helm.md about tracing, audit and encryption. A test in hack/helm
// renders the values.
func filesExample(t *testing.T) (secret corev1.Secret, flags []string) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "helm.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(content), "\n## Tracing, audit and encryption\n")
	blocks := strings.Split(section, "\n```")
	if len(blocks) < 4 {
		t.Fatal("docs/helm.md must have a Secret and values")
	}
	text := strings.TrimPrefix(blocks[1], "yaml\n")
	text = strings.Replace(text, "secret: KEY", "secret: "+base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{1}, 32)), 1)
	if err := yaml.UnmarshalStrict([]byte(text), &secret); err != nil {
		t.Fatal(err)
	}
	var values struct {
		APIServer struct{ ExtraArgs []string } `json:"apiserver"`
	}
	if err := yaml.Unmarshal([]byte(strings.TrimPrefix(blocks[3], "yaml\n")), &values); err != nil {
		t.Fatal(err)
	}
	return secret, values.APIServer.ExtraArgs
}

// TestExampleOfFiles checks that the server accepts the flags and the files of the example, and encrypts everything that it stores.
func TestExampleOfFiles(t *testing.T) {
	secret, flags := filesExample(t)
	dir := t.TempDir()
	for name, content := range secret.StringData {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	o, all := newOptions(t), pflag.NewFlagSet("", pflag.ContinueOnError)
	sections := o.Flags()
	for _, name := range sections.Order {
		all.AddFlagSet(sections.FlagSets[name])
	}
	if err := all.Parse(strings.Split(strings.ReplaceAll(strings.Join(flags, "\n"), "/etc/jobset-apiserver/config", dir), "\n")); err != nil {
		t.Fatal(err)
	}
	defer func() {
		for _, flag := range flags {
			name, _, _ := strings.Cut(strings.TrimPrefix(flag, "--"), "=")
			if err := all.Set(name, all.Lookup(name).DefValue); err != nil {
				t.Error(err)
			}
		}
	}()

	traces, err := genericoptions.ReadTracingConfiguration(o.Recommended.Traces.ConfigFile)
	if err != nil {
		t.Fatal(err)
	}
	if errs := tracingapi.ValidateTracingConfiguration(traces, nil, nil); len(errs) > 0 || *traces.SamplingRatePerMillion == 0 {
		t.Errorf("the configuration of tracing is %+v: %v", traces, errs)
	}
	audit := o.Recommended.Audit
	if rules, err := policy.LoadPolicyFromFile(audit.PolicyFile); err != nil || len(rules.Rules) == 0 || audit.LogOptions.Path == "" {
		t.Errorf("the audit policy is %+v: %v", rules, err)
	}
	if err := o.validateStored(); err != nil {
		t.Error(err)
	}
	expectEncryption(t, o.Recommended.Etcd.EncryptionProviderConfigFilepath)
}

func expectEncryption(t *testing.T, file string) {
	t.Helper()
	loaded, err := encryptionconfig.LoadEncryptionConfig(t.Context(), file, false, "")
	if err != nil {
		t.Fatal(err)
	}
	transformers := encryptionconfig.StaticTransformers(loaded.Transformers)
	for _, resource := range apigroups.All().Stored() {
		transformer := transformers.TransformerForResource(resource)
		out, err := transformer.TransformToStorage(t.Context(), []byte("an object"), value.DefaultContext("key"))
		if err != nil || !bytes.HasPrefix(out, []byte("k8s:enc:secretbox:")) {
			t.Errorf("%s is stored as %q: %v", resource, out, err)
		}
	}
}
