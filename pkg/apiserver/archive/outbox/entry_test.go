// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package outbox

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiserver/pkg/storage/value"
)

// noise returns JSON that gzip cannot make much smaller.
func noise(t *testing.T, size int) []byte {
	t.Helper()
	data := make([]byte, size/2)
	if _, err := rand.Read(data); err != nil {
		t.Fatal(err)
	}
	return []byte(`{"noise":"` + hex.EncodeToString(data) + `"}`)
}

func TestDetailsThatAreTooLargeAreLeftOut(t *testing.T) {
	for name, tc := range map[string]struct {
		spec []byte
		want bool
	}{
		"a megabyte of text":                   {spec: []byte(`{"text":"` + strings.Repeat("x", 1<<20) + `"}`), want: true},
		"more than etcd takes":                 {spec: noise(t, 3<<20)},
		"small, but too large once it is read": {spec: []byte(`{"text":"` + strings.Repeat("x", maxRunBytes) + `"}`)},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			o := f.open()
			entry := entryOf("a", func(e *Entry) { e.Run.Details.Spec.Raw = tc.spec })
			f.put(o, entry)
			if entry.Run.Details == nil {
				t.Error("the run of the caller was changed")
			}
			want := entryOf("a", func(e *Entry) {
				e.Run.Details = nil
				if tc.want {
					e.Run.Details = entry.Run.Details
				}
			})
			if diff := cmp.Diff([]Entry{want}, f.entries(o), sameRuns); diff != "" {
				t.Errorf("(-want +got):\n%.2000s", diff)
			}
		})
	}
}

// mirror encrypts by turning bytes around.
type mirror struct{}

func (mirror) TransformFromStorage(_ context.Context, data []byte, ctx value.Context) ([]byte, bool, error) {
	data, ok := bytes.CutPrefix(data, append([]byte("mirrored:"), ctx.AuthenticatedData()...))
	if !ok {
		return nil, false, errors.New("not mirrored under this key")
	}
	return turned(data), false, nil
}

func (mirror) TransformToStorage(_ context.Context, data []byte, ctx value.Context) ([]byte, error) {
	return append(append([]byte("mirrored:"), ctx.AuthenticatedData()...), turned(data)...), nil
}

func turned(data []byte) []byte {
	out := make([]byte, len(data))
	for i, b := range data {
		out[len(data)-1-i] = b
	}
	return out
}

func TestRunsAreEncryptedAsTheirObjectsAre(t *testing.T) {
	f := newFixture(t)
	o := f.open()
	o.Encrypt(encrypted, mirror{})
	entry := entryOf("a", func(e *Entry) { e.Resource = encrypted })
	f.put(o, entry)
	f.put(o, entryOf("b"))
	stored := f.load(o)
	for i, want := range []bool{true, false} {
		if got := bytes.Contains(stored[i].value, []byte("mirrored:/registry/test/archive-outbox/a.1")); got != want {
			t.Errorf("%s is encrypted: %t, want %t", stored[i].Key, got, want)
		}
	}
	if diff := cmp.Diff([]Entry{entry, entryOf("b")}, f.entries(o), sameRuns); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestEntriesThatCannotBeRead(t *testing.T) {
	f := newFixture(t)
	o := f.open()
	o.Encrypt(encrypted, mirror{})
	f.put(o, entryOf("sound"))
	sound := f.load(o)[0]
	first, payload, _ := bytes.Cut(sound.value, []byte("\n"))
	for name, tc := range map[string]struct {
		value string
		want  string
	}{
		"nothing": {want: "the value must begin with a line of JSON"},
		"no line": {value: strings.Repeat("x", 1<<16), want: "the value must begin with a line of JSON"},
		"no JSON": {value: "x\n", want: "the first line must be JSON: invalid character 'x' looking for beginning of value"},
		"of a newer server": {
			value: `{"version":2}` + "\n", want: "the value must have version 1, not 2: another version of the server has written it",
		},
		"not compressed": {value: string(first) + "\n{}", want: "decompressing it: unexpected EOF"},
		"cut off":        {value: string(first) + "\n" + string(payload[:len(payload)/2]), want: "decompressing it: unexpected EOF"},
		"not encrypted": {
			value: `{"version":1,"resource":"secrets.example.com"}` + "\n" + string(payload), want: "decrypting it: not mirrored under this key",
		},
		"no JSON inside": {value: string(first) + "\n" + zipped(t, []byte("x")),
			want: "the run must be JSON: invalid character 'x' looking for beginning of value"},
		"no run": {value: string(first) + "\n" + zipped(t, []byte("{}")),
			want: "the run must have the UID of an object, the number of an execution and a state"},
		"larger than it seems": {value: string(first) + "\n" + zipped(t, make([]byte, maxRunBytes+1)),
			want: "the run must have at most 16777216 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := o.Decode(t.Context(), Stored{Ref: sound.Ref, value: []byte(tc.value)})
			if err == nil {
				t.Fatal("it can be read")
			}
			wantEqual(t, sound.Key+" in etcd: "+tc.want, err.Error())
		})
	}
}

func zipped(t *testing.T, data []byte) string {
	t.Helper()
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	if _, err := zip.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}
