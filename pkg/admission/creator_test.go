// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"

	creatoradmission "github.com/jobset-apiserver/jobset-apiserver/pkg/admission/creator"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/creator"
)

func TestCreator(t *testing.T) {
	by := func(name string) map[string]string { return map[string]string{creator.Annotation: name, "mine": "x"} }
	mine := map[string]string{"mine": "x"}
	for name, tc := range map[string]struct {
		resource    schema.GroupResource
		subresource string
		user        user.Info
		before      *jobset.JobSet // nil at creation
		sent        map[string]string
		want        map[string]string
	}{
		"a new set":                                  {user: &user.DefaultInfo{Name: "ada"}, want: map[string]string{creator.Annotation: "ada"}},
		"a new set that names another user":          {user: &user.DefaultInfo{Name: "ada"}, sent: by("bob"), want: by("ada")},
		"a new set of a user who is not known":       {sent: by("bob"), want: mine},
		"a new sequence":                             {resource: batch.Resource("sequentialjobs"), user: &user.DefaultInfo{Name: "ada"}, sent: mine, want: by("ada")},
		"a new set of groups":                        {resource: leaderworkerset.Resource("leaderworkersets"), user: &user.DefaultInfo{Name: "ada"}, sent: mine, want: by("ada")},
		"a new disaggregated set":                    {resource: disaggregatedset.Resource("disaggregatedsets"), user: &user.DefaultInfo{Name: "ada"}, sent: mine, want: by("ada")},
		"another resource":                           {resource: batch.Resource("podreadinessgroups"), user: &user.DefaultInfo{Name: "ada"}, sent: mine, want: mine},
		"a subresource":                              {subresource: "status", user: &user.DefaultInfo{Name: "ada"}, before: newSet(by("ada")), sent: mine, want: mine},
		"a name of 256 bytes":                        {user: &user.DefaultInfo{Name: strings.Repeat("a", 256)}, sent: mine, want: by(strings.Repeat("a", 256))},
		"a long name is cut between two characters":  {user: &user.DefaultInfo{Name: "a" + strings.Repeat("é", 200)}, sent: mine, want: by("a" + strings.Repeat("é", 127))},
		"a name with a line break becomes one line":  {user: &user.DefaultInfo{Name: "a\nb"}, sent: mine, want: by("a\uFFFDb")},
		"an update by another user":                  {user: &user.DefaultInfo{Name: "bob"}, before: newSet(by("ada")), sent: by("ada"), want: by("ada")},
		"an update that lacks it":                    {user: &user.DefaultInfo{Name: "bob"}, before: newSet(by("ada")), sent: mine, want: by("ada")},
		"an update that lacks all annotations":       {user: &user.DefaultInfo{Name: "bob"}, before: newSet(by("ada")), want: map[string]string{creator.Annotation: "ada"}},
		"an update that changes it":                  {user: &user.DefaultInfo{Name: "bob"}, before: newSet(by("ada")), sent: by("bob"), want: by("ada")},
		"an update of a set of a version without it": {user: &user.DefaultInfo{Name: "bob"}, before: newSet(mine), sent: by("bob"), want: mine},
	} {
		t.Run(name, func(t *testing.T) {
			resource := jobset.Resource("jobsets")
			if tc.resource.Resource != "" {
				resource = tc.resource
			}
			operation, old := admission.Create, runtime.Object(nil)
			if tc.before != nil {
				operation, old = admission.Update, tc.before
			}
			object := newSet(tc.sent)
			attributes := admission.NewAttributesRecord(object, old, jobset.Kind("JobSet").WithVersion("v1alpha2"), "team", "train",
				resource.WithVersion("v1alpha2"), tc.subresource, operation, nil, false, tc.user)
			if err := creatoradmission.New().Admit(t.Context(), attributes, nil); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, object.Annotations); diff != "" {
				t.Errorf("annotations (-want +got):\n%s", diff)
			}
		})
	}
}
