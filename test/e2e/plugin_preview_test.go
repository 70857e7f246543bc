// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/preview"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

// previewReport is what -o json prints about JobSets.
type previewReport struct {
	APIVersion, Kind string
	Refused          bool
	Sets             []preview.Set
}

// previewed is the report about a manifest and the exit code. Nothing may exist afterwards that did not before.
func (k *kubectl) previewed(manifest string) (previewReport, int) {
	k.Helper()
	all := func() string {
		return k.ok("get", "jobsets,jobs,pods,services,persistentvolumeclaims", "-o", "name")
	}
	before := all()
	r := k.pluginIn(manifest, "preview", "-f", "-", "-o", "json")
	if diff := cmp.Diff(before, all()); diff != "" {
		k.Errorf("the preview has created or deleted something:\n%s", diff)
	}
	var report previewReport
	if err := json.Unmarshal([]byte(r.stdout), &report); err != nil {
		k.Fatalf("%v in output %q, messages %q", err, r.stdout, r.stderr)
	}
	if report.APIVersion != "kubectl.jobset-apiserver.io/v1alpha1" || report.Kind != "Preview" {
		k.Errorf("the report is of %s %s", report.APIVersion, report.Kind)
	}
	return report, r.code
}

// bigSet has all kinds of children.
const bigSet = `apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: train}
spec:
  volumeClaimPolicies:
  - templates:
    - metadata: {name: data}
      spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
  replicatedJobs:
  - name: driver
    template: {spec: {template: {metadata: &running {annotations: {jobset-apiserver.io/kwok-outcome: running}}, spec: {containers: [{name: main, image: x}]}}}}
  - name: workers
    replicas: 3
    dependsOn: [{name: driver, status: Ready}]
    template:
      spec:
        parallelism: 2
        completions: 2
        template:
          metadata: *running
          spec: {containers: [{name: main, image: x, volumeMounts: [{name: data, mountPath: /data}]}]}
  - name: helpers
    replicas: 2
    template: {spec: {completionMode: NonIndexed, parallelism: 2, completions: 4, template: {metadata: *running, spec: {containers: [{name: main, image: x}]}}}}
`

// expand returns the names that a pattern stands for; random characters stay a pattern.
func expand(pattern string) []string {
	indices := regexp.MustCompile(`\[(\d+)-(\d+)\]`).FindStringSubmatchIndex(pattern)
	if indices == nil {
		return []string{pattern}
	}
	first, _ := strconv.Atoi(pattern[indices[2]:indices[3]])
	last, _ := strconv.Atoi(pattern[indices[4]:indices[5]])
	var names []string
	for i := first; i <= last; i++ {
		names = append(names, expand(fmt.Sprintf("%s%d%s", pattern[:indices[0]], i, pattern[indices[1]:]))...)
	}
	return names
}

func TestPluginPreviewNamesWhatIsCreatedThen(t *testing.T) {
	t.Parallel()
	k := newKubectl(t)
	report, code := k.previewed(bigSet)
	if code != 0 || report.Refused {
		t.Fatalf("exit code %d, refused %v: %+v", code, report.Refused, report)
	}
	set := report.Sets[0]
	var jobs, pods []string
	for _, rj := range set.ReplicatedJobs {
		jobs = append(jobs, expand(rj.JobNames)...)
		names := expand(rj.PodNames)
		for len(names) < rj.Pods { // pods without an index share the name of their Job
			names = append(names, names[:rj.Jobs]...)
		}
		pods = append(pods, names...)
	}
	others := []string{"service/" + set.Service.Name, "persistentvolumeclaim/" + set.Claims[0].Name}

	k.okIn(bigSet, "apply", "-f", "-")
	names := func(kind string) []string {
		return strings.Fields(k.ok("get", kind, "-o", "jsonpath={.items[*].metadata.name}"))
	}
	random := regexp.MustCompile(`-[a-z0-9]{5}$`)
	k.eventually(func() string {
		slices.Sort(jobs)
		if diff := cmp.Diff(jobs, names("jobs")); diff != "" {
			return "Jobs (-preview +created):\n" + diff
		}
		var got []string
		for _, pod := range names("pods") {
			got = append(got, random.ReplaceAllString(pod, "-xxxxx"))
		}
		slices.Sort(pods)
		slices.Sort(got)
		if diff := cmp.Diff(pods, got); diff != "" {
			return "pods (-preview +created):\n" + diff
		}
		return ""
	})
	got := strings.Fields(k.ok("get", "services,persistentvolumeclaims", "-o", "name"))
	slices.Sort(others)
	slices.Sort(got)
	if diff := cmp.Diff(others, got); diff != "" {
		t.Errorf("Services and claims (-preview +created):\n%s", diff)
	}
	host := k.field("pod/"+names("pods")[0], "{.spec.hostname}.{.spec.subdomain}")
	if !slices.Contains(expand(set.ReplicatedJobs[0].HostNames), host) {
		t.Errorf("DNS name of the driver: preview %q, created %q", set.ReplicatedJobs[0].HostNames, host)
	}
	if report, code = k.previewed(bigSet); code != 0 || !report.Sets[0].Exists || len(report.Sets[0].Changes) > 0 {
		t.Errorf("the set was applied from the same manifest: exit code %d, %+v", code, report.Sets[0])
	}
}

// setOf is a set of one pod with the specification.
func setOf(name, podSpec string, more ...string) string {
	return fmt.Sprintf(`apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: %s}
spec:
  %s
  replicatedJobs:
  - name: w
    replicas: 3
    template: {spec: {template: {spec: %s}}}
---
`, name, strings.Join(more, "\n  "), podSpec)
}

func TestPluginPreviewShowsRejections(t *testing.T) {
	tier.OnRequest(t, "more cases of preview")
	t.Parallel()
	k := newKubectl(t)
	k.ok("label", "namespace", k.namespace, "pod-security.kubernetes.io/enforce=baseline", "pod-security.kubernetes.io/warn=baseline")
	k.okIn(`{apiVersion: v1, kind: LimitRange, metadata: {name: limits}, spec: {limits: [{type: Container, max: {cpu: "1"}, default: {cpu: 500m}, defaultRequest: {cpu: 500m}}]}}`, "create", "-f", "-")
	k.ok("create", "quota", "team", "--hard=requests.cpu=1,count/jobs.batch=10,services=1,requests.storage=1Gi")
	// Suspended, so that no pod of it counts in the quota for a while.
	k.okIn(`{apiVersion: batch/v1, kind: Job, metadata: {name: taken-w-1}, spec: {suspend: true, template: {spec: {restartPolicy: Never, containers: [{name: main, image: x}]}}}}`, "create", "-f", "-")
	k.ok("create", "service", "clusterip", "found", "--tcp=80")
	k.eventually(func() string {
		if got := k.field("resourcequota/team", `{.status.used.services} {.status.used.count/jobs\.batch}`); got != "1 1" {
			return "the quota has counted " + got
		}
		return ""
	})
	const plain = `{containers: [{name: main, image: x}]}`
	const claim = `volumeClaimPolicies: [{templates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 5Gi}}}}]}]`
	const noDNS = `network: {enableDNSHostnames: false}`

	for name, tc := range map[string]struct {
		set  string
		look func(preview.Set) string
		want string
	}{
		"the server refuses the set": {
			setOf("bad", plain, "successPolicy: {operator: Some}"),
			func(s preview.Set) string { return fmt.Sprint(s.Verdict) }, `{Refused [spec.successPolicy.operator: Unsupported value: "Some"`,
		},
		"a field is unknown": {
			setOf("bad", plain, "sucessPolicy: {operator: All}"),
			func(s preview.Set) string { return fmt.Sprint(s.Verdict) }, `unknown field "spec.sucessPolicy"`,
		},
		"the Job API refuses the template": {
			setOf("bad", `{containers: [{name: main, image: x, volumeMounts: [{name: data, mountPath: /data}]}]}`),
			func(s preview.Set) string { return fmt.Sprint(*s.ReplicatedJobs[0].Job) }, "{Refused [spec.replicatedJobs[0].template.spec.template.spec.containers[0].volumeMounts[0].name: Not found",
		},
		"pod security refuses the pods, and warns of the Job": {
			setOf("bad", `{hostNetwork: true, containers: [{name: main, image: x}]}`),
			func(s preview.Set) string { return fmt.Sprint(*s.ReplicatedJobs[0].Job, *s.ReplicatedJobs[0].Pod) },
			`{Accepted [] [would violate PodSecurity "baseline:latest": host namespaces (hostNetwork=true)]} {Refused [spec.replicatedJobs[0].template.spec.template.spec: violates PodSecurity`,
		},
		"a limit range refuses the pods": {
			setOf("bad", `{containers: [{name: main, image: x, resources: {limits: {cpu: 2}}}]}`),
			func(s preview.Set) string { return fmt.Sprint(*s.ReplicatedJobs[0].Pod) }, "maximum cpu usage per Container is 1, but limit is 2",
		},
		"the service account does not exist": {
			setOf("bad", `{serviceAccountName: nobody, containers: [{name: main, image: x}]}`),
			func(s preview.Set) string { return fmt.Sprint(*s.ReplicatedJobs[0].Pod) }, `serviceaccount "nobody" not found`,
		},
		"the name of a Job is taken": {
			setOf("taken", plain, noDNS),
			func(s preview.Set) string {
				return s.ReplicatedJobs[0].TakenNames + fmt.Sprint(*s.ReplicatedJobs[0].Job)
			}, "taken-w-1{Accepted",
		},
		"one pod fits into the quota, and the whole set does not": {
			setOf("big", plain, noDNS),
			func(s preview.Set) string { return fmt.Sprint(*s.ReplicatedJobs[0].Pod, s.Quota) },
			"{Accepted [] []} [{team count/jobs.batch 3 1 10 } {team requests.cpu 1500m 0 1 500m}]",
		},
		"the quota allows no further Service": {
			setOf("big", plain),
			func(s preview.Set) string { return fmt.Sprint(s.Service.Verdict) }, "exceeded quota: team, requested: services=1, used: services=1, limited: services=1",
		},
		"the quota is too small for the claim": {
			setOf("big", `{containers: [{name: main, image: x, volumeMounts: [{name: data, mountPath: /data}]}]}`, noDNS, claim),
			func(s preview.Set) string { return fmt.Sprint(s.Claims[0].Verdict, s.Quota) }, "{team requests.storage 5Gi 0 1Gi 4Gi}",
		},
		"a Service exists that does not suit": {
			setOf("found", plain),
			func(s preview.Set) string { return fmt.Sprint(*s.Service) }, "{found true {Accepted [] [it is not headless",
		},
	} {
		t.Run(name, func(t *testing.T) {
			report, code := k.previewed(tc.set)
			if code != 1 || !report.Refused {
				t.Errorf("exit code %d, refused %v", code, report.Refused)
			}
			if got := tc.look(report.Sets[0]); !strings.Contains(got, tc.want) {
				t.Errorf("got %s\nwhich does not contain %s", got, tc.want)
			}
		})
	}
}

func TestPluginPreviewOfALargeSet(t *testing.T) {
	tier.OnRequest(t, "more cases of preview")
	t.Parallel()
	k := newKubectl(t)
	large := strings.Replace(setOf("large", `{containers: [{name: main, image: x, resources: {requests: {cpu: 1}}}]}`), "replicas: 3", "replicas: 2000", 1)
	k.ok("create", "quota", "team", "--hard=requests.cpu=3k")
	k.eventually(func() string {
		return strings.TrimPrefix(k.field("resourcequota/team", `{.status.used.requests\.cpu}`), "0")
	})
	began := time.Now()
	report, code := k.previewed(large)
	t.Logf("preview of 2,000 Jobs, with kubectl calls before and after: %v", time.Since(began).Round(time.Millisecond))
	want := []string{"0", "large-w-[0-1999]", "large-w-[0-1999]-0-xxxxx", "[{team requests.cpu 2k 0 3k }]"}
	got := []string{fmt.Sprint(code), report.Sets[0].ReplicatedJobs[0].JobNames, report.Sets[0].ReplicatedJobs[0].PodNames, fmt.Sprint(report.Sets[0].Quota)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("exit code, names and quota (-want +got):\n%s", diff)
	}
	if got := k.pluginIn(large, "preview", "-f", "-").stdout; len(strings.Split(got, "\n")) > 15 {
		t.Errorf("2,000 Jobs take more lines than a terminal has room for:\n%s", got)
	}
}

func TestPluginPreviewForUsersWithFewRights(t *testing.T) {
	tier.OnRequest(t, "more cases of preview")
	t.Parallel()
	k := newKubectl(t)
	k.okIn(`{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: creator}, rules: [{apiGroups: [jobset.x-k8s.io], resources: [jobsets], verbs: [create]}]}`, "create", "-f", "-")
	creator := k.account("creator", "")
	k.ok("create", "rolebinding", "creator", "--role=creator", "--serviceaccount="+k.namespace+":creator")
	creator.mayEventually("create", "jobsets.jobset.x-k8s.io")
	var r result
	creator.eventually(func() string { // our server remembers for a while who may not
		r = creator.pluginIn(bigSet, "preview", "-f", "-")
		if r.code != 0 {
			return r.stdout + r.stderr
		}
		return ""
	})
	for _, text := range []string{
		"JobSet train in namespace " + k.namespace + ": Accepted", "train-workers-[0-2]", "Unknown", `cannot create resource "pods"`,
		"whether the quotas are large enough is not known", "As far as your permissions show, the set would create 6 Jobs and 11 pods.",
	} {
		if !strings.Contains(r.stdout, text) {
			t.Errorf("%q is missing in:\n%s", text, r.stdout)
		}
	}
	nobody := k.account("nobody", "")
	if r := nobody.pluginIn(bigSet, "preview", "-f", "-"); r.code != 1 || !strings.Contains(r.stdout, "Refused") || !strings.Contains(r.stdout, "cannot create resource") {
		t.Errorf("without the right to create the set: exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
}
