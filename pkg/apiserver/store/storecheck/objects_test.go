// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storecheck

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

// TestObjectsThatGoWithTheirOwners: an object that the garbage collector deletes does not count as an owner, and neither does what it owns.
func TestObjectsThatGoWithTheirOwners(t *testing.T) {
	t.Parallel()
	store, main := newMember(t), newMain()
	g := main.guard(t, store)
	const own, other = "leaderworkerset.x-k8s.io/v1", "batch/v1"
	put := func(uid string, owners ...string) {
		references := ""
		for i := 0; i < len(owners); i += 2 {
			if i > 0 {
				references += ","
			}
			references += fmt.Sprintf(`{"apiVersion":%q,"kind":"K","name":"n","uid":%q}`, owners[i], owners[i+1])
		}
		if _, err := g.store.client.Put(t.Context(), testPrefix+"/sets/ns/"+uid, fmt.Sprintf(`{"metadata":{"uid":%q,"ownerReferences":[%s]}}`, uid, references)); err != nil {
			t.Fatal(err)
		}
	}
	put("free")
	put("child", own, "free")
	put("orphan", own, "lost")
	put("child-of-orphan", own, "orphan")
	put("of-two", own, "lost", own, "free")
	put("of-others", own, "lost", other, "cron")
	got, err := g.Objects(t.Context(), []Resource{{Prefix: "sets"}}, sets.New("leaderworkerset.x-k8s.io"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]types.UID{"child", "free", "of-others", "of-two"}, sets.List(got)); diff != "" {
		t.Errorf("objects that stay (-want +got):\n%s", diff)
	}
}
