// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// rbacObject has the fields of roles and of bindings of both scopes.
type rbacObject struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Rules    []rbacv1.PolicyRule `json:"rules"`
	RoleRef  rbacv1.RoleRef      `json:"roleRef"`
	Subjects []rbacv1.Subject    `json:"subjects"`

	// component is the component of kustomize that adds the object, if one does.
	component string
}

var (
	writes = sets.New("create", "update", "patch", "delete", "deletecollection", "*")
	// secret are resources that need an entry even if an account may only read them.
	secret      = sets.New("secrets", "configmaps", "pods", "pods/log", "pods/exec", "pods/attach", "pods/proxy", "serviceaccounts/token", "*")
	quoted      = regexp.MustCompile("`([^`]+)`")
	builtInRole = sets.New("system:auth-delegator", "extension-apiserver-authentication-reader")
)

// rbacObjects returns all roles and bindings in artifacts.
func rbacObjects(t *testing.T) (objects []rbacObject) {
	t.Helper()
	for _, pattern := range []string{"base/*.yaml", "base/rbac/*.yaml", "components/*/*.yaml", "take-over/*.yaml", "examples/in-place-restart/*.yaml"} {
		files, err := filepath.Glob(filepath.Join(root, "artifacts", pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			component := ""
			if strings.Contains(pattern, "components") {
				component = filepath.Base(filepath.Dir(file))
			}
			decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 1<<20)
			for {
				object := rbacObject{component: component}
				err := decoder.Decode(&object)
				if errors.Is(err, io.EOF) {
					break
				}
				// Patches are lists, which do not decode as an object.
				if err == nil && strings.HasPrefix(object.APIVersion, "rbac.authorization.k8s.io/") && (object.Rules != nil || object.RoleRef.Name != "") {
					objects = append(objects, object)
				}
			}
		}
	}
	return objects
}

// permissions returns what the manifests let the account change, and what it may read of secret resources: the verbs of each resource
// and place.
func permissions(t *testing.T, account string) map[string]sets.Set[string] {
	t.Helper()
	objects := rbacObjects(t)
	roles := map[string]rbacObject{}
	for _, object := range objects {
		if object.Rules != nil {
			roles[object.Kind+"/"+object.Namespace+"/"+object.Name] = object
		}
	}
	found := map[string]sets.Set[string]{}
	for _, binding := range objects {
		if !slices.ContainsFunc(binding.Subjects, func(s rbacv1.Subject) bool { return s.Name == account }) {
			continue
		}
		place, key := "cluster", "ClusterRole//"+binding.RoleRef.Name
		if binding.Kind == "RoleBinding" {
			place = binding.Namespace
			key = binding.RoleRef.Kind + "/" + binding.Namespace + "/" + binding.RoleRef.Name
		}
		role, exists := roles[key]
		if !exists && !builtInRole.Has(binding.RoleRef.Name) && binding.RoleRef.Name != "jobset-apiserver:policy-params" {
			t.Errorf("%s is bound to %s, which the manifests do not have", account, binding.RoleRef.Name)
		}
		if role.component != "" {
			place += ", component " + role.component
		}
		collect(found, role.Rules, place)
	}
	return found
}

func collect(found map[string]sets.Set[string], rules []rbacv1.PolicyRule, place string) {
	for _, rule := range rules {
		names := slices.Sorted(slices.Values(rule.ResourceNames))
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				if !writes.HasAny(rule.Verbs...) && !secret.Has(resource) {
					continue
				}
				if group != "" {
					resource += "." + group
				}
				key := strings.Join(append([]string{resource, place}, names...), " | ")
				found[key] = sets.New(rule.Verbs...).Union(found[key])
			}
		}
	}
}

// documented returns the permissions in the table about the account.
func documented(t *testing.T, page, account string) map[string]sets.Set[string] {
	t.Helper()
	_, table, _ := strings.Cut(page, "<!-- permissions "+account+" -->\n")
	table, _, _ = strings.Cut(strings.TrimSpace(table), "\n\n")
	found := map[string]sets.Set[string]{}
	for line := range strings.Lines(table) {
		cells := strings.Split(line, " | ")
		resources := quoted.FindAllStringSubmatch(cells[0], -1)
		if resources == nil {
			continue
		}
		place, list, _ := strings.Cut(strings.ReplaceAll(cells[1], "`", ""), ": ")
		names := []string{place}
		if list != "" {
			names = append(names, strings.Split(list, ", ")...)
		}
		for _, resource := range resources {
			key := strings.Join(append([]string{resource[1]}, names...), " | ")
			if found[key] != nil {
				t.Errorf("%s: two rows about %s", account, key)
			}
			found[key] = sets.New(strings.Split(cells[2], ", ")...)
		}
	}
	return found
}

// TestPermissionsAreDocumented compares the tables of SECURITY.md with the manifests.
func TestPermissionsAreDocumented(t *testing.T) {
	page := read(t, "SECURITY.md")
	for account, least := range map[string]int{"jobset-apiserver": 8, "jobset-controller-manager": 25} {
		got, want := documented(t, page, account), permissions(t, account)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: SECURITY.md (+) differs from the manifests (-):\n%s", account, diff)
		}
		if len(want) < least {
			t.Errorf("%s: found %d permissions: want at least %d, or the search has stopped working", account, len(want), least)
		}
	}
}

// TestSecurityClaims checks what SECURITY.md says about all roles and pods.
func TestSecurityClaims(t *testing.T) {
	page := read(t, "SECURITY.md")
	accounts := sets.New("jobset-apiserver", "jobset-controller-manager")
	roles := 0
	for _, object := range rbacObjects(t) {
		for _, subject := range object.Subjects {
			if subject.Name == "system:unauthenticated" || subject.Name == "system:anonymous" {
				t.Errorf("%s is bound to %s", object.RoleRef.Name, subject.Name)
			}
			if accounts.Has(subject.Name) && builtInRole.Has(object.RoleRef.Name) && !strings.Contains(page, "`"+object.RoleRef.Name+"`") {
				t.Errorf("SECURITY.md does not say that %s is bound to %s", subject.Name, object.RoleRef.Name)
			}
		}
		if object.Rules == nil {
			continue
		}
		roles++
		if name, _, _ := strings.Cut(object.Name, ":"); !accounts.Has(name) && !strings.Contains(page, "`"+object.Name+"`") {
			t.Errorf("SECURITY.md does not have the role %s", object.Name)
		}
		for _, rule := range object.Rules {
			all := slices.Concat(rule.APIGroups, rule.Resources, rule.Verbs, rule.NonResourceURLs)
			if slices.Contains(all, "*") || sets.New("escalate", "bind", "impersonate").HasAny(rule.Verbs...) {
				t.Errorf("%s has a wildcard or may become another user: %v", object.Name, rule)
			}
		}
	}
	if roles < 14 {
		t.Errorf("found %d roles: want at least 14, or the search has stopped working", roles)
	}
	for _, program := range []string{"apiserver.yaml", "controller.yaml"} {
		manifest := read(t, "artifacts/base/"+program)
		for _, want := range []string{"runAsNonRoot: true", "allowPrivilegeEscalation: false", "readOnlyRootFilesystem: true", "drop: [ALL]"} {
			if !strings.Contains(manifest, want) {
				t.Errorf("artifacts/base/%s lacks %s", program, want)
			}
		}
	}
	removed := read(t, "artifacts/components/tls-secret/no-permissions.yaml")
	for _, role := range []string{"jobset-apiserver:serving-certificate", "jobset-apiserver:ca-bundles"} {
		if strings.Count(removed, "name: "+role) != 2 {
			t.Errorf("the component tls-secret does not remove the role %s and its binding", role)
		}
	}
}

// TestRolesOfUsersAreGrantedAsDocumented compares who gets a role by default.
func TestRolesOfUsersAreGrantedAsDocumented(t *testing.T) {
	page := read(t, "SECURITY.md")
	bound := sets.New[string]()
	objects := rbacObjects(t)
	for _, object := range objects {
		if len(object.Subjects) > 0 && object.component == "" {
			bound.Insert(object.RoleRef.Name)
		}
	}
	for _, object := range objects {
		if object.Kind != "ClusterRole" || object.Rules == nil || strings.Contains(object.Name, ":") {
			continue
		}
		_, row, found := strings.Cut(page, "`"+object.Name+"` | ")
		if _, other, grouped := strings.Cut(page, "`"+object.Name+"`, `"); !found && grouped {
			_, row, found = strings.Cut(other, "` | ")
		}
		granted, _, _ := strings.Cut(row, " | ")
		toEdit := object.Labels["rbac.authorization.k8s.io/aggregate-to-edit"] == "true"
		aggregated := toEdit || object.Labels["rbac.authorization.k8s.io/aggregate-to-admin"] == "true"
		switch {
		case !found || object.Name == "jobset-apiserver" || object.Name == "jobset-controller-manager":
		case toEdit != strings.HasPrefix(granted, "the roles "), aggregated && !toEdit && granted != "the role `admin`":
			t.Errorf("%s: SECURITY.md says that it is granted to %q", object.Name, granted)
		case !aggregated && bound.Has(object.Name) == strings.HasPrefix(granted, "no one"):
			t.Errorf("%s: SECURITY.md says that it is granted to %q", object.Name, granted)
		}
	}
}

// read returns a file of the repository.
func read(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
