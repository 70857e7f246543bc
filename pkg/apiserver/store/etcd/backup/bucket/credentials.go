// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package bucket

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/minio/minio-go/v7/pkg/credentials"
)

// Names of credentials, in the environment and in a mounted Secret.
const (
	keyIDName  = "AWS_ACCESS_KEY_ID"
	secretName = "AWS_SECRET_ACCESS_KEY" //nolint:gosec // a name, not a secret
	tokenName  = "AWS_SESSION_TOKEN"     //nolint:gosec // a name, not a secret
)

// metadataTimeout bounds a question to the metadata service of a node, which most machines do not have.
const metadataTimeout = 5 * time.Second

// foundCredentials are credentials and where they come from, for messages.
type foundCredentials struct {
	*credentials.Credentials
	from string
}

// credentials reads credentials. What a flag names must have them; without a flag, the first source of the environment that has any is
// used.
func (o *Options) credentials(ctx context.Context, transport *http.Transport) (foundCredentials, error) {
	var found foundCredentials
	var fix string
	switch {
	case o.CredentialsDir != "":
		value, err := readSecret(o.CredentialsDir)
		if err != nil {
			return found, fmt.Errorf("--s3-credentials-dir: %w", err)
		}
		return foundCredentials{credentials.NewStaticV4(value.AccessKeyID, value.SecretAccessKey, value.SessionToken), o.CredentialsDir}, nil
	case o.CredentialsFile != "":
		found = foundCredentials{credentials.NewFileAWSCredentials(o.CredentialsFile, ""), o.CredentialsFile}
		fix = "--s3-credentials-file: " + o.CredentialsFile + " must have the profile " + cmp.Or(os.Getenv("AWS_PROFILE"), "default") +
			" with aws_access_key_id and aws_secret_access_key"
	default:
		found = environment(transport)
		fix = "there are no credentials for the object storage: set --s3-credentials-file, --s3-credentials-dir, or " + keyIDName + " and " +
			secretName + " in the environment"
	}
	value, err := found.GetWithContext(&credentials.CredContext{Context: ctx})
	if err == nil && (value.AccessKeyID == "" || value.SecretAccessKey == "") {
		err = errors.New("one of them is missing")
	}
	if err != nil {
		return found, fmt.Errorf("%s: %w", fix, err)
	}
	return found, nil
}

// environment returns the credentials of the environment, in the order of the AWS SDKs.
func environment(transport *http.Transport) foundCredentials {
	file := os.Getenv("AWS_SHARED_CREDENTIALS_FILE")
	if home, err := os.UserHomeDir(); err == nil && file == "" {
		if file = filepath.Join(home, ".aws", "credentials"); !exists(file) {
			file = ""
		}
	}
	identity := &credentials.IAM{Client: &http.Client{Transport: transport}}
	switch {
	case os.Getenv(keyIDName) != "" || os.Getenv(secretName) != "":
		return foundCredentials{credentials.NewEnvAWS(), "the environment"}
	case os.Getenv("AWS_WEB_IDENTITY_TOKEN_FILE") != "":
		identity.Client = &http.Client{} // Amazon's token service, with authorities of the system
		return foundCredentials{credentials.New(identity), "the web identity"}
	case file != "":
		return foundCredentials{credentials.NewFileAWSCredentials(file, ""), file}
	}
	identity.Client.Timeout = metadataTimeout
	return foundCredentials{credentials.New(identity), "the metadata of the node"}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// readSecret reads a directory with a file for each credential.
func readSecret(dir string) (credentials.Value, error) {
	read := func(name string) (string, error) {
		content, err := os.ReadFile(filepath.Join(dir, name))
		return strings.TrimSpace(string(content)), err
	}
	id, err1 := read(keyIDName)
	secret, err2 := read(secretName)
	token, err3 := read(tokenName)
	if errors.Is(err3, fs.ErrNotExist) {
		err3 = nil
	}
	err := errors.Join(err1, err2, err3)
	if err == nil && (id == "" || secret == "") {
		err = fmt.Errorf("%s and %s in %s must not be empty", keyIDName, secretName, dir)
	}
	return credentials.Value{AccessKeyID: id, SecretAccessKey: secret, SessionToken: token}, err
}
