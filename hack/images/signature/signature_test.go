// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package signature

import (
	"encoding/base64"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"aead.dev/minisign"
	"golang.org/x/crypto/blake2b"
	"golang.org/x/crypto/scrypt"
)

// pair is a key with a password, in files.
type pair struct{ private, encrypted, password, public, text string }

func newPair(t *testing.T, encrypted bool) pair {
	t.Helper()
	public, private, err := minisign.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	p := pair{text: public.String()}
	text, err := private.MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	p.private = write(t, dir, "key", string(text))
	if encrypted {
		p.encrypted, p.password = write(t, dir, "encrypted", encrypt(t, string(text))), write(t, dir, "password", "secret\n")
	}
	if text, err = public.MarshalText(); err != nil {
		t.Fatal(err)
	}
	p.public = write(t, dir, "key.pub", string(text)+"\n")
	return p
}

// encrypt encrypts a private key as minisign does, with parameters of scrypt for which a test has time.
func encrypt(t *testing.T, text string) string {
	t.Helper()
	comment, encoded, _ := strings.Cut(text, "\n")
	key, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		t.Fatal(err)
	}
	copy(key[2:], "Sc")
	binary.LittleEndian.PutUint64(key[38:], 1<<15)
	binary.LittleEndian.PutUint64(key[46:], 1<<24)
	stream, err := scrypt.Key([]byte("secret"), key[6:38], 1<<10, 8, 1, 104)
	if err != nil {
		t.Fatal(err)
	}
	sum := blake2b.Sum256(append([]byte("Ed"), key[54:126]...))
	copy(key[126:], sum[:])
	for i := range stream {
		key[54+i] ^= stream[i]
	}
	return comment + "\n" + base64.StdEncoding.EncodeToString(key)
}

func write(t *testing.T, dir, name, content string) string {
	t.Helper()
	file := filepath.Join(dir, name)
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func sign(t *testing.T, key, password, file, comment string) string {
	t.Helper()
	k, err := ReadKey(key, password)
	if err != nil {
		t.Fatal(err)
	}
	if err := k.Sign(file, comment); err != nil {
		t.Fatal(err)
	}
	signed, err := os.ReadFile(file + Suffix)
	if err != nil {
		t.Fatal(err)
	}
	return string(signed)
}

func TestSign(t *testing.T) {
	p := newPair(t, true)
	file := write(t, t.TempDir(), "a", "content")
	first := sign(t, p.private, "", file, "release v1")
	if second := sign(t, p.encrypted, p.password, file, "release v1"); first != second {
		t.Errorf("the key with and without a password must sign alike:\n%s\n%s", first, second)
	}
	for _, key := range []string{p.public, p.text} {
		if comment, err := Verify(file, key); err != nil || comment != "release v1" {
			t.Errorf("%s: %q (%v)", key, comment, err)
		}
	}
	if _, err := ReadKey(p.encrypted, ""); err == nil || !strings.Contains(err.Error(), "has a password: set SIGNING_PASSWORD_FILE to a file with it") {
		t.Errorf("without a password: %v", err)
	}
	wrong := write(t, t.TempDir(), "wrong", "another")
	if _, err := ReadKey(p.encrypted, wrong); err == nil || !strings.Contains(err.Error(), "the password in "+wrong+" does not decrypt the signing key") {
		t.Errorf("with another password: %v", err)
	}
}

func TestVerifyMistakes(t *testing.T) {
	p, other := newPair(t, false), newPair(t, false)
	tests := map[string]struct {
		spoil func(t *testing.T, file string)
		key   string
		want  string
	}{
		"the file is changed":    {func(t *testing.T, file string) { write(t, filepath.Dir(file), "a", "contents") }, p.public, "a or its signature was changed: the signature does not match the public key "},
		"the comment is changed": {replace("release v1", "release v2"), p.public, "a or its signature was changed"},
		"another key":            {func(*testing.T, string) {}, other.public, "a is signed by the key "},
		"no signature":           {func(_ *testing.T, file string) { os.Remove(file + Suffix) }, p.public, "a is not signed: "},
		"no signature in the file": {
			func(t *testing.T, file string) { write(t, filepath.Dir(file), "a"+Suffix, "x") }, p.public, "a.minisig: must be a signature of minisign",
		},
		"a public key that is missing":    {func(*testing.T, string) {}, "missing.pub", "reading the public key: open missing.pub: no such file or directory"},
		"a private key as the public one": {func(*testing.T, string) {}, p.private, "must be a public key of minisign"},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			file := write(t, t.TempDir(), "a", "content")
			sign(t, p.private, "", file, "release v1")
			test.spoil(t, file)
			if _, err := Verify(file, test.key); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error is %v, want one with %q", err, test.want)
			}
		})
	}
}

// replace changes the text of a signature.
func replace(from, to string) func(t *testing.T, file string) {
	return func(t *testing.T, file string) {
		content, err := os.ReadFile(file + Suffix)
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Dir(file), filepath.Base(file)+Suffix, strings.ReplaceAll(string(content), from, to))
	}
}

func TestReadKeyMistakes(t *testing.T) {
	p := newPair(t, false)
	if _, err := ReadKey(p.public, ""); err == nil || !strings.Contains(err.Error(), "must be a private key of minisign") {
		t.Errorf("a public key: %v", err)
	}
	if _, err := ReadKey("missing", ""); err == nil || !strings.Contains(err.Error(), "reading the signing key: open missing: no such file") {
		t.Errorf("no key: %v", err)
	}
}
