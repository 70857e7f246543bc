// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/leaderworkerset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/flagerror"
)

func TestGangProvider(t *testing.T) {
	const head = "apiVersion: config.jobset.x-k8s.io/v1alpha1\nkind: Configuration\n"
	const known = "must be one of volcano, coscheduling, kubernetes, kubernetes-v1alpha2"
	for name, tc := range map[string]struct {
		file      string
		args      []string
		want, err string
	}{
		"the default":           {file: head},
		"coscheduling":          {file: head, args: []string{"--gang-scheduling-provider=coscheduling"}, want: "coscheduling"},
		"of the file":           {file: head + "gangSchedulingManagement: {schedulerProvider: coscheduling}\n", want: "coscheduling"},
		"the flag wins":         {file: head + "gangSchedulingManagement: {schedulerProvider: coscheduling}\n", args: []string{"--gang-scheduling-provider=volcano"}, want: "volcano"},
		"the flag switches off": {file: head + "gangSchedulingManagement: {schedulerProvider: coscheduling}\n", args: []string{"--gang-scheduling-provider="}},
		"the flag is wrong":     {file: head, args: []string{"--gang-scheduling-provider=yunikorn"}, err: `--gang-scheduling-provider: ` + known + `, or empty for none, not "yunikorn"`},
		"the file is wrong": {
			file: head + "gangSchedulingManagement: {schedulerProvider: yunikorn}\n", err: `--config: gangSchedulingManagement.schedulerProvider: ` + known + `, or empty for none, not "yunikorn"`,
		},
		"the file names none": {
			file: head + "gangSchedulingManagement: {}\n", err: "--config: gangSchedulingManagement.schedulerProvider: " + known + "; leave gangSchedulingManagement out for none",
		},
	} {
		t.Run(name, func(t *testing.T) {
			o, err := configured(t, tc.file, tc.args...)
			switch {
			case tc.err != "" && (err == nil || flagerror.OneLine(err) != tc.err):
				t.Errorf("error %v, want %s", err, tc.err)
			case tc.err == "" && (err != nil || o.GangProvider != tc.want):
				t.Errorf("got %v, %v, want %q", o, err, tc.want)
			}
		})
	}
}

// TestGangsNeedTheirAPI has the controller of LeaderWorkerSets wait for the PodGroups. That of JobSets, few of which
// may ask for groups, does not.
func TestGangsNeedTheirAPI(t *testing.T) {
	for provider, want := range map[string]schema.GroupVersion{
		"volcano": {Group: "scheduling.volcano.sh", Version: "v1beta1"}, "coscheduling": {Group: "scheduling.x-k8s.io", Version: "v1alpha1"},
		"kubernetes": {Group: "scheduling.k8s.io", Version: "v1beta1"}, "kubernetes-v1alpha2": {Group: "scheduling.k8s.io", Version: "v1alpha2"},
	} {
		o := &Options{GangProvider: provider}
		for _, d := range known {
			if got := slices.Contains(o.needsOf(d), want); got != (d.name == leaderworkerset.Name) {
				t.Errorf("%s: the controller %s needs %s: %t", provider, d.name, want, got)
			}
			if d.name == jobset.Name && len(o.needsOf(d)) != len(d.needs) {
				t.Errorf("%s: the controller of JobSets needs %v", provider, o.needsOf(d))
			}
		}
	}
}
