// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"sigs.k8s.io/yaml"
)

// artifact returns a file of artifacts. Each of its documents is passed to the function.
func artifact(t *testing.T, name string, fn func(document []byte)) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("..", "..", "..", "artifacts", name))
	if err != nil {
		t.Fatal(err)
	}
	for document := range strings.SplitSeq(string(content), "\n---\n") {
		fn([]byte(document))
	}
}

// memberFlags are the flags of a server in the overlay embedded-ha.
func memberFlags(t *testing.T) (flags []string) {
	t.Helper()
	artifact(t, "base/apiserver.yaml", func(document []byte) {
		var deployment appsv1.Deployment
		if err := yaml.Unmarshal(document, &deployment); err == nil && deployment.Kind == "Deployment" {
			flags = append(flags, deployment.Spec.Template.Spec.Containers[0].Args...)
		}
	})
	for _, name := range []string{
		"overlays/embedded/pod-labels.yaml", "overlays/embedded/statefulset.yaml", "components/embedded-members/statefulset.yaml",
		"components/embedded-members-backup/statefulset.yaml",
	} {
		artifact(t, name, func(document []byte) {
			var patches []struct {
				Path  string
				Value any
			}
			if err := yaml.Unmarshal(document, &patches); err != nil {
				t.Fatal(err)
			}
			for _, patch := range patches {
				if strings.HasSuffix(patch.Path, "/args/-") {
					flags = append(flags, fmt.Sprint(patch.Value))
				}
			}
		})
	}
	return flags
}

// TestManifestsOfMembers checks that each server of the overlay embedded-ha accepts its flags, and may use the Secret of the members and no
// other.
func TestManifestsOfMembers(t *testing.T) {
	flags := memberFlags(t)
	known := newOptions(t).Flags()
	for _, flag := range flags {
		name, _, _ := strings.Cut(strings.TrimPrefix(flag, "--"), "=")
		found := false
		for _, section := range known.FlagSets {
			found = found || section.Lookup(name) != nil
		}
		if !found {
			t.Errorf("--%s is unknown", name)
		}
	}
	var peers string
	for ordinal := range membersCount {
		pod := fmt.Sprint("jobset-apiserver-", ordinal)
		o := &Options{Storage: NewStorageOptions(), Recommended: newOptions(t).Recommended}
		external := genericoptions.NewEtcdOptions(storagebackend.NewDefaultConfig(EtcdPrefix, nil))
		fs := pflag.NewFlagSet("", pflag.ContinueOnError)
		fs.ParseErrorsAllowlist.UnknownFlags = true
		o.Storage.AddFlags(fs, external)
		o.ManagedCert.addFlags(fs)
		text := strings.NewReplacer("$(POD_NAME)", pod, "$(STORAGE)", storageEmbedded).Replace(strings.Join(flags, "\n"))
		if err := fs.Parse(strings.Split(text, "\n")); err != nil {
			t.Fatal(err)
		}
		if err := o.Storage.Validate(external); err != nil {
			t.Errorf("%s: %v", pod, err)
		}
		if err := o.validateMembers(); err != nil {
			t.Errorf("%s: %v", pod, err)
		}
		host := fmt.Sprintf("jobset-apiserver-member-%d.jobset-system.svc", ordinal)
		if c := o.Cluster(); c == nil || c.Ordinal != ordinal || c.Hosts[ordinal] != host {
			t.Errorf("%s runs the member %+v, must be at %s", pod, c, host)
		}
		peers = o.ManagedCert.Peers().Secret
	}
	checkSecretOfMembers(t, peers)
}

func checkSecretOfMembers(t *testing.T, want string) {
	t.Helper()
	var secret, allowed []string
	artifact(t, "components/embedded-members/serving.yaml", func(document []byte) {
		var object rbacv1.Role
		if err := yaml.Unmarshal(document, &object); err != nil || object.Kind != "Secret" {
			t.Fatalf("%s: %v", object.Kind, err)
		}
		secret = append(secret, object.Namespace+"/"+object.Name)
	})
	artifact(t, "components/embedded-members/rbac.yaml", func(document []byte) {
		var role rbacv1.Role
		if err := yaml.Unmarshal(document, &role); err != nil {
			t.Fatal(err)
		}
		for _, rule := range role.Rules {
			for _, name := range rule.ResourceNames {
				allowed = append(allowed, role.Namespace+"/"+name)
			}
		}
	})
	if !slices.Equal(secret, []string{want}) || !slices.Equal(allowed, []string{want}) {
		t.Errorf("the manifests have the Secret %v and allow %v, the servers use %s", secret, allowed, want)
	}
}
