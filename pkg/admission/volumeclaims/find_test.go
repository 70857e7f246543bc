// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package volumeclaims

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
)

// mainAPI counts what it is asked.
type mainAPI struct {
	corev1client.PersistentVolumeClaimInterface
	get getClaim
	// pages are what it lists, without an end when endless.
	pages   [][]corev1.PersistentVolumeClaim
	endless bool
	listErr error

	namespace   string
	gets, lists int
}

func (m *mainAPI) PersistentVolumeClaims(namespace string) corev1client.PersistentVolumeClaimInterface {
	m.namespace = namespace
	return m
}

func (m *mainAPI) Get(ctx context.Context, name string, _ metav1.GetOptions) (*corev1.PersistentVolumeClaim, error) {
	m.gets++
	return m.get(ctx, m.namespace, name)
}

func (m *mainAPI) List(_ context.Context, o metav1.ListOptions) (*corev1.PersistentVolumeClaimList, error) {
	m.lists++
	page := 0
	if o.Continue != "" {
		page, _ = strconv.Atoi(o.Continue)
	}
	list := &corev1.PersistentVolumeClaimList{}
	if page < len(m.pages) {
		list.Items = m.pages[page]
	}
	if m.endless || page+1 < len(m.pages) {
		list.Continue = strconv.Itoa(page + 1)
	}
	return list, m.listErr
}

// manyTemplates are as many claims as a JobSet may ask for: 50 policies with 50 templates.
func manyTemplates(retention jobset.RetentionPolicyType) []jobset.VolumeClaimPolicy {
	policies := make([]jobset.VolumeClaimPolicy, 50)
	for i := range policies {
		policies[i].RetentionPolicy = &jobset.VolumeRetentionPolicy{WhenDeleted: ptr.To(retention)}
		for j := range 50 {
			policies[i].Templates = append(policies[i].Templates, template(fmt.Sprintf("t%d-%d", i, j)))
		}
	}
	return policies
}

// TestManyClaims bounds the questions to the main API, and still finds the last claim.
func TestManyClaims(t *testing.T) {
	claim := func(name string) corev1.PersistentVolumeClaim {
		return corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: liveSpec()}
	}
	cases := map[string]struct {
		main        mainAPI
		wantLists   int
		wantErr     []string
		wantWarning string
	}{
		"the last claim exists": {
			main:      mainAPI{pages: [][]corev1.PersistentVolumeClaim{{claim("other"), claim("t0-0")}, {claim("t49-49-js")}}},
			wantLists: 2, wantErr: []string{"spec.volumeClaimPolicies[49].retentionPolicy.whenDeleted"},
		},
		"none exists": {main: mainAPI{pages: [][]corev1.PersistentVolumeClaim{{claim("other")}}}, wantLists: 1},
		"the namespace has more claims than are listed": {
			main: mainAPI{endless: true}, wantLists: maxPages,
			wantWarning: "template[0]: volume claim t0-0-js could not be looked up in the cluster, so it and the claims after it were not checked: the namespace has more than 5000 volume claims",
		},
		"the main API cannot be asked": {
			main: mainAPI{listErr: errors.New("connection refused")}, wantLists: 1, wantWarning: "were not checked: connection refused",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			said, err := validateWith(t, &c.main, manyTemplates(jobset.RetentionPolicyDelete)...)
			checkRefusal(t, err, c.wantErr)
			if c.main.gets != 0 || c.main.lists != c.wantLists {
				t.Errorf("%d claims were read and %d pages listed, want 0 and %d", c.main.gets, c.main.lists, c.wantLists)
			}
			if got := strings.Join(said, "\n"); !strings.Contains(got, c.wantWarning) || c.wantWarning == "" && got != "" {
				t.Errorf("warnings are %q, want one with %q", got, c.wantWarning)
			}
		})
	}
}
