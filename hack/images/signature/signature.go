// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package signature signs files with a key of minisign, and verifies such signatures.
package signature

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"aead.dev/minisign"
)

// Suffix of the file with a signature, behind the name of the signed file.
const Suffix = ".minisig"

// Key is a private key of minisign.
type Key struct {
	private minisign.PrivateKey
}

// ReadKey reads a private key. The password, if the key has one, is the first line of another file.
func ReadKey(file, passwordFile string) (*Key, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading the signing key: %w", err)
	}
	var key Key
	if !minisign.IsEncrypted(content) {
		if err := key.private.UnmarshalText(content); err != nil {
			return nil, fmt.Errorf("reading the signing key %s: must be a private key of minisign: %w", file, err)
		}
		return &key, nil
	}
	if passwordFile == "" {
		return nil, fmt.Errorf("the signing key %s has a password: set SIGNING_PASSWORD_FILE to a file with it", file)
	}
	password, err := os.ReadFile(passwordFile)
	if err != nil {
		return nil, fmt.Errorf("reading the password of the signing key: %w", err)
	}
	first, _, _ := strings.Cut(string(password), "\n")
	if key.private, err = minisign.DecryptKey(strings.TrimSuffix(first, "\r"), content); err != nil {
		return nil, fmt.Errorf("the password in %s does not decrypt the signing key %s", passwordFile, file)
	}
	return &key, nil
}

// Sign writes the signature of a file beside it. The comment is signed as well. Equal files and comments have equal signatures.
func (k *Key) Sign(file, comment string) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	reader := minisign.NewReader(bytes.NewReader(content))
	if _, err := io.Copy(io.Discard, reader); err != nil {
		return err
	}
	untrusted := fmt.Sprintf("signature of the key %016X", k.private.ID())
	return os.WriteFile(file+Suffix, reader.SignWithComments(k.private, comment, untrusted), 0o644)
}

// Verify checks that the key has signed a file.
func (k *Key) Verify(file string) error {
	public, ok := k.private.Public().(minisign.PublicKey)
	if !ok {
		return fmt.Errorf("the key %016X has no public half", k.private.ID())
	}
	_, err := verify(file, public)
	return err
}

// Verify checks the signature of a file against a public key, which is the name of a file or the key itself. It returns the signed comment.
func Verify(file, publicKey string) (string, error) {
	key, err := parsePublic(publicKey)
	if err != nil {
		return "", err
	}
	return verify(file, key)
}

func verify(file string, key minisign.PublicKey) (string, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	text, err := os.ReadFile(file + Suffix)
	if errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("%s is not signed: %w", file, err)
	}
	if err != nil {
		return "", err
	}
	var signed minisign.Signature
	if err := signed.UnmarshalText(text); err != nil {
		return "", fmt.Errorf("%s%s: must be a signature of minisign: %w", file, Suffix, err)
	}
	if signed.KeyID != key.ID() {
		return "", fmt.Errorf("%s is signed by the key %016X, and the public key is %016X", file, signed.KeyID, key.ID())
	}
	if !minisign.Verify(key, content, text) {
		return "", fmt.Errorf("%s or its signature was changed: the signature does not match the public key %016X", file, key.ID())
	}
	return signed.TrustedComment, nil
}

func parsePublic(text string) (minisign.PublicKey, error) {
	var key minisign.PublicKey
	content, err := os.ReadFile(text)
	if err != nil {
		if key.UnmarshalText([]byte(text)) == nil {
			return key, nil
		}
		return key, fmt.Errorf("reading the public key: %w", err)
	}
	if err := key.UnmarshalText(bytes.TrimSpace(content)); err != nil {
		return key, fmt.Errorf("%s: must be a public key of minisign: %w", text, err)
	}
	return key, nil
}
