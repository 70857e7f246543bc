// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package witness_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
)

const someUUID = "2c1c7b2e-0f0a-4a5b-9a3e-0d5d8a1b6c7f"

func TestLostOwnersAreReadAsWritten(t *testing.T) {
	var many []types.UID
	for range witness.MaxLostOwners {
		many = append(many, types.UID(uuid.NewString()))
	}
	var long []types.UID
	for i := range 2000 {
		long = append(long, types.UID(fmt.Sprintf("%0100d", i)))
	}
	for name, tc := range map[string]struct {
		owners []types.UID
		want   int
		more   bool
	}{
		"none":                            {},
		"UUIDs":                           {owners: []types.UID{someUUID, "00000000-0000-0000-0000-000000000000"}, want: 2},
		"UIDs that are no UUIDs":          {owners: []types.UID{"uid-of-a-test", types.UID(strings.ToUpper(someUUID)), types.UID(strings.ReplaceAll(someUUID, "-", ""))}, want: 3},
		"as many as fit":                  {owners: many, want: witness.MaxLostOwners},
		"one more than fit":               {owners: append(many[:len(many):len(many)], someUUID), want: witness.MaxLostOwners, more: true},
		"too many that are no UUIDs":      {owners: long, want: 990, more: true},
		"UIDs that would break the lines": {owners: []types.UID{"", "a\nb", someUUID}, want: 1, more: true},
	} {
		cm := &corev1.ConfigMap{Data: map[string]string{"others": "left over\n"}, BinaryData: map[string][]byte{"owners": []byte("left over")}}
		list := witness.LostOwners{NewUUID: "b", Revision: 7, Owners: tc.owners}
		list.Write(cm)
		size := 0
		for _, value := range cm.Data {
			size += len(value)
		}
		for _, value := range cm.BinaryData {
			size += len(value)
		}
		if size > 1<<20 {
			t.Errorf("%s: %d bytes do not fit into a ConfigMap", name, size)
		}
		got, err := witness.ReadLostOwners(cm)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got.NewUUID != "b" || got.Revision != 7 || len(got.Owners) != tc.want || got.More != tc.more {
			t.Errorf("%s: %q, revision %d, %d owners, more: %t", name, got.NewUUID, got.Revision, len(got.Owners), got.More)
		}
		if tc.want == len(tc.owners) {
			if diff := cmp.Diff(tc.owners, got.Owners); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		}
	}
}

func TestMalformedLostOwners(t *testing.T) {
	good := func() map[string]string {
		return map[string]string{"newUUID": "b", "revision": "7", "more": "false"}
	}
	with := func(name, value string) *corev1.ConfigMap {
		data := good()
		data[name] = value
		return &corev1.ConfigMap{Data: data}
	}
	for want, cm := range map[string]*corev1.ConfigMap{
		"data[newUUID] of ConfigMap kube-system/jobset-apiserver-lost-owners: must not be empty": with("newUUID", ""),
		"data[revision]": with("revision", "x"),
		"data[more]":     with("more", "x"),
		"data[owners] of ConfigMap kube-system/jobset-apiserver-lost-owners: must have 16 bytes for each owner, not 17 in all": {
			Data: good(), BinaryData: map[string][]byte{"owners": make([]byte, 17)},
		},
	} {
		if _, err := witness.ReadLostOwners(cm); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	for _, data := range []map[string]string{nil, {"other": "x"}} {
		if list, err := witness.ReadLostOwners(&corev1.ConfigMap{Data: data}); list != nil || err != nil {
			t.Errorf("data %v, which is none of our data: %+v, %v", data, list, err)
		}
	}
}

func TestLostOwnersMatchTheirRefusalOnly(t *testing.T) {
	list := &witness.LostOwners{NewUUID: "b", Revision: 7}
	restored := &witness.Restored{Revision: 9}
	for name, tc := range map[string]struct {
		record witness.Record
		want   bool
	}{
		"the store is refused":                       {witness.Record{UUID: "a", Refusal: &witness.Refusal{NewUUID: "b", Revision: 7}}, true},
		"another store is refused":                   {witness.Record{UUID: "a", Refusal: &witness.Refusal{NewUUID: "c", Revision: 7}}, false},
		"the store is refused in another state":      {witness.Record{UUID: "a", Refusal: &witness.Refusal{NewUUID: "b", Revision: 8}}, false},
		"the store was accepted":                     {witness.Record{UUID: "b", Restored: restored}, true},
		"the store was accepted, another is refused": {witness.Record{UUID: "b", Restored: restored, Refusal: &witness.Refusal{NewUUID: "c"}}, false},
		"the right store is back":                    {witness.Record{UUID: "a", Restored: restored}, false},
		"nothing was accepted":                       {witness.Record{UUID: "b"}, false},
	} {
		if got := list.Matches(&tc.record); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
