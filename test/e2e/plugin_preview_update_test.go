// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

// changed is a set like that of setOf, with more fields.
func changed(replicas int, more ...string) string {
	return fmt.Sprintf(`apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: train}
spec:
  %s
  replicatedJobs:
  - name: w
    replicas: %d
    template: {spec: {template: {spec: {containers: [{name: main, image: x}]}}}}
`, strings.Join(more, "\n  "), replicas)
}

// TestPluginPreviewOfAnExistingSet compares previews with what kubectl apply then does, for sets that were applied by the client and by the
// server.
func TestPluginPreviewOfAnExistingSet(t *testing.T) {
	tier.OnRequest(t, "more cases of preview")
	t.Parallel()
	for name, apply := range map[string][]string{"client side": {"apply", "-f", "-"}, "server side": {"apply", "--server-side", "-f", "-"}} {
		t.Run(name, func(t *testing.T) {
			k := newKubectl(t)
			k.okIn(changed(2, "suspend: true", "ttlSecondsAfterFinished: 600"), apply...)
			k.hasChildren(0)
			for _, tc := range []struct {
				name, manifest string
				want           []string
				detailed       int
			}{
				{"the same manifest", changed(2, "suspend: true", "ttlSecondsAfterFinished: 600"), nil, 0},
				{"a field is removed", changed(2, "suspend: true"), []string{"spec.ttlSecondsAfterFinished Immediate"}, 2},
				{"the set is resumed", changed(2, "suspend: false"), []string{"spec.suspend Resume"}, 2},
				{"a field that cannot change", changed(3, "suspend: true"), []string{"spec.replicatedJobs[0].replicas Refused", "spec.suspend "}, 1},
			} {
				report, code := k.previewed(tc.manifest)
				var got []string
				for _, c := range report.Sets[0].Changes {
					got = append(got, c.Field+" "+string(c.Effect))
				}
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("%s: changes (-want +got):\n%s", tc.name, diff)
				}
				if wantCode := tc.detailed % 2; code != wantCode {
					t.Errorf("%s: exit code %d, want %d: %+v", tc.name, code, wantCode, report.Sets[0].Verdict)
				}
				if r := k.pluginIn(tc.manifest, "preview", "-f", "-", "--detailed-exit-code"); r.code != tc.detailed {
					t.Errorf("%s: detailed exit code %d, want %d\n%s%s", tc.name, r.code, tc.detailed, r.stdout, r.stderr)
				}
				if tc.detailed == 2 {
					k.okIn(tc.manifest, apply...)
					if strings.Contains(tc.manifest, "suspend: false") {
						k.hasChildren(2)
					}
					if after, _ := k.previewed(tc.manifest); len(after.Sets[0].Changes) > 0 {
						t.Errorf("%s: applied, and the preview still has changes: %+v", tc.name, after.Sets[0].Changes)
					}
				}
			}
		})
	}
}

// hasChildren waits until the set of two Jobs has its children, so that a preview does not see the controller create them.
func (k *kubectl) hasChildren(pods int) {
	k.Helper()
	k.eventually(func() string {
		names := k.ok("get", "jobs,services,pods", "-o", "name")
		if strings.Count(names, "job.batch/") != 2 || strings.Count(names, "service/") != 1 || strings.Count(names, "pod/") != pods {
			return "children: " + names
		}
		return ""
	})
}

func TestPluginPreviewDiffAndManifestObjects(t *testing.T) {
	tier.OnRequest(t, "more cases of preview")
	t.Parallel()
	k := newKubectl(t)
	account := setOf("train", `{serviceAccountName: trainer, containers: [{name: main, image: x}]}`)
	if r := k.pluginIn(account, "preview", "-f", "-"); r.code != 1 || !strings.Contains(r.stdout, "spec.replicatedJobs[0].template.spec.template.spec.serviceAccountName: ") {
		t.Errorf("without the account: exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	whole := account + "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: trainer}\n"
	if r := k.pluginIn(whole, "preview", "-f", "-"); r.code != 0 || !strings.Contains(r.stdout, "taken into account from the manifest: 1 ServiceAccount") {
		t.Errorf("with the account: exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	k.okIn(whole, "apply", "-f", "-")
	diff := k.pluginIn(strings.Replace(account, "spec:\n  \n", "spec:\n  suspend: true\n", 1), "preview", "-f", "-", "-o", "diff")
	if diff.code != 0 || !strings.Contains(diff.stdout, "\n+  suspend: true\n") || !strings.HasPrefix(diff.stdout, "--- LIVE/jobset.x-k8s.io.v1alpha2.JobSet."+k.namespace+".train\n") {
		t.Errorf("diff: exit code %d\n%s%s", diff.code, diff.stdout, diff.stderr)
	}
}
