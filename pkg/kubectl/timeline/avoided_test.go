// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

func TestAvoidedNodes(t *testing.T) {
	const want = "node-017 until 2026-03-09T14:45:00Z (attempt 1: Evicted <b>)"
	set := eventful()
	set.Status.Attempts[1].AvoidedNodes = []jobsetv1alpha2.AvoidedNode{{
		Name: "node-017", Attempt: 1, Reason: "Evicted <b>", Until: metav1.NewTime(time.Date(2026, 3, 9, 14, 45, 0, 0, time.UTC)),
	}}
	set.Status.Attempts[3].AvoidedNodes, set.Status.Attempts[3].ForgetTime = set.Status.Attempts[1].AvoidedNodes, at(9100)
	line := Build(set, after(12000))
	got := text(line, screen{zone: time.UTC})
	for _, want := range []string{"   kept off: " + want + "\n", "   kept off: " + want + "; forgotten, because there was no room elsewhere\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("the text lacks %q:\n%s", want, got)
		}
	}
	html := page(t, line)
	if want := "<b>Kept off:</b> " + strings.ReplaceAll(strings.ReplaceAll(want, "<", "&lt;"), ">", "&gt;"); strings.Count(html, want) != 2 {
		t.Errorf("the page lacks %q", want)
	}
}
