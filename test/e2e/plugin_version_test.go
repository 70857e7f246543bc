// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

// TestPluginVersion asks as an administrator and as a user who may not read the lease. All programs are of one build.
func TestPluginVersion(t *testing.T) {
	tier.OnRequest(t, "waits for the holder of the lease")
	t.Parallel()
	k := newKubectl(t)
	client := k.pluginOK("version", "--client", "-o", "jsonpath={.client}")
	k.eventually(func() string { // another test may have taken the lease
		got := k.pluginOK("version", "-o", "jsonpath={.server} {.controller} {.featureGates.RestartOnFailureTarget}")
		if !strings.HasPrefix(got, client+" "+client+" ") || strings.HasSuffix(got, " ") {
			return "server, controller and a gate: " + got + ", client " + client
		}
		return ""
	})
	kubernetes := k.pluginOK("version", "-o", "jsonpath={.kubernetes}")
	if want := k.ok("version", "-o", "json"); !strings.Contains(want, `"gitVersion": "`+kubernetes+`"`) {
		t.Errorf("Kubernetes: got %q, want one of %s", kubernetes, want)
	}
	nobody := k.account("nobody", "")
	nobody.eventually(func() string {
		r := nobody.plugin("version")
		if r.code != 0 || !strings.Contains(r.stdout, "Server      "+client) || !strings.Contains(r.stdout, "Controller  unknown") || !strings.Contains(r.stdout, "cannot get resource") {
			return r.stdout + r.stderr
		}
		return ""
	})
	if r := k.withPlugins("", "jobset", "version", "--server=http://127.0.0.1:1"); r.code != 1 || !strings.Contains(r.stdout, "Client") || !strings.Contains(r.stderr, "reading the version of the cluster") {
		t.Errorf("no cluster: exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
}
