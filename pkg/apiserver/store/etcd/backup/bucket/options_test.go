// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package bucket_test

import (
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/etcd/backup/bucket"
)

func TestPlaces(t *testing.T) {
	for address, want := range map[string]bucket.Place{
		"s3://backups":                   {Bucket: "backups"},
		"s3://backups/":                  {Bucket: "backups"},
		"s3://backups/jobset/":           {Bucket: "backups", Prefix: "jobset/"},
		"s3://backups/a/b/c.db":          {Bucket: "backups", Prefix: "a/b/", Name: "c.db"},
		"s3://backups.example.com/c.db":  {Bucket: "backups.example.com", Name: "c.db"},
		"s3://backups/with a space/c.db": {Bucket: "backups", Prefix: "with a space/", Name: "c.db"},
	} {
		got, err := bucket.ParsePlace(address)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", address, err, diff)
		}
	}
	for address, want := range map[string]string{
		"backups/":            `"backups/" must begin with s3://, as in s3://BUCKET/PREFIX/`,
		"s3://":               `"s3://" must name a bucket, as in s3://BUCKET/PREFIX/: `,
		"s3://Upper/":         `"s3://Upper/" must name a bucket`,
		"s3://backups//x":     `"s3://backups//x" must be s3://BUCKET/PREFIX/ without`,
		"s3://backups/?x=y":   `"s3://backups/?x=y" must be s3://BUCKET/PREFIX/ without`,
		"s3://backups/jobset": `"s3://backups/jobset" must end with a slash: the name of each backup is added to it`,
	} {
		if _, err := bucket.ParseDirectory(address); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", address, err, want)
		}
	}
}

func TestWrongOptions(t *testing.T) {
	clean(t)
	credentials := map[string]string{"AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "secret"}
	dir, half := secret(t, credentials), secret(t, map[string]string{"AWS_ACCESS_KEY_ID": "id"})
	empty := secret(t, map[string]string{"AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": ""})
	file := filepath.Join(secret(t, map[string]string{"credentials": "[other]\naws_access_key_id = x"}), "credentials")
	for want, options := range map[string]bucket.Options{
		"--s3-credentials-file: must not be set together with --s3-credentials-dir":  {CredentialsFile: file, CredentialsDir: dir},
		"--s3-credentials-file: " + file + " must have the profile default with ":    {CredentialsFile: file},
		"--s3-credentials-dir: open " + half + "/AWS_SECRET_ACCESS_KEY: no such":     {CredentialsDir: half},
		"--s3-credentials-dir: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in ":      {CredentialsDir: empty},
		"--s3-ca-file: open none: no such file":                                      {CredentialsDir: dir, CAFile: "none"},
		"--s3-ca-file: " + file + " must have certificates in PEM":                   {CredentialsDir: dir, CAFile: file},
		`--s3-endpoint: must be https://HOST or https://HOST:PORT, not "minio:9000"`: {CredentialsDir: dir, Endpoint: "minio:9000"},
		`--s3-endpoint: must be https://HOST or https://HOST:PORT, not "https://minio/path"`: {
			CredentialsDir: dir, Endpoint: "https://minio/path",
		},
		"there are no credentials for the object storage: set --s3-credentials-file, --s3-credentials-dir, or AWS_ACCESS_KEY_ID and": {},
	} {
		_, err := options.Open(t.Context(), bucket.Place{Bucket: "backups"})
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v\nwant %s", err, want)
		}
	}
}

// clean removes what the environment of the test may have. The metadata service of a node does not answer.
func clean(t *testing.T) {
	t.Helper()
	for _, name := range []string{
		"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_SHARED_CREDENTIALS_FILE", "AWS_ENDPOINT_URL",
		"AWS_ENDPOINT_URL_S3", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_WEB_IDENTITY_TOKEN_FILE",
	} {
		t.Setenv(name, "")
	}
	t.Setenv("HOME", t.TempDir())
	t.Setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://127.0.0.1:1/")
}

// TestRequests: where a request goes, and who signs it, for each source of the options.
func TestRequests(t *testing.T) {
	s := newService(t)
	var host, path, signed atomic.Value
	s.hook = func(w http.ResponseWriter, r *http.Request) bool {
		host.Store(r.Host)
		path.Store(r.URL.Path)
		signed.Store(r.Header.Get("Authorization"))
		return answer(w, http.StatusForbidden, "AccessDenied", "")
	}
	file := filepath.Join(secret(t, map[string]string{
		"credentials": "[default]\naws_access_key_id = filed\naws_secret_access_key = x\n[p]\naws_access_key_id = profiled\naws_secret_access_key = x",
	}), "credentials")
	for name, tc := range map[string]struct {
		flags []string
		env   map[string]string
		// path is of the bucket, key and region are what the signature names.
		path, key, region string
	}{
		"a directory":               {[]string{"--s3-credentials-dir=" + s.options.CredentialsDir}, nil, "/backups/", "id", "us-east-1"},
		"a file":                    {[]string{"--s3-credentials-file=" + file}, nil, "/backups/", "filed", "us-east-1"},
		"a profile of a file":       {[]string{"--s3-credentials-file=" + file}, map[string]string{"AWS_PROFILE": "p"}, "/backups/", "profiled", "us-east-1"},
		"the environment":           {nil, map[string]string{"AWS_ACCESS_KEY_ID": "env", "AWS_SECRET_ACCESS_KEY": "x"}, "/backups/", "env", "us-east-1"},
		"a file of the environment": {nil, map[string]string{"AWS_SHARED_CREDENTIALS_FILE": file}, "/backups/", "filed", "us-east-1"},
		"a region":                  {[]string{"--s3-credentials-file=" + file, "--s3-region=eu-north-1"}, nil, "/backups/", "filed", "eu-north-1"},
		"a region of the environment": {
			[]string{"--s3-credentials-file=" + file}, map[string]string{"AWS_REGION": "eu-west-1"}, "/backups/", "filed", "eu-west-1",
		},
		"the path, by a flag": {[]string{"--s3-credentials-file=" + file, "--s3-path-style"}, nil, "/backups/", "filed", "us-east-1"},
	} {
		t.Run(name, func(t *testing.T) {
			clean(t)
			t.Setenv("AWS_ENDPOINT_URL_S3", s.URL)
			for name, value := range tc.env {
				t.Setenv(name, value)
			}
			options, flags := bucket.Options{CAFile: s.options.CAFile}, pflag.NewFlagSet("", pflag.ContinueOnError)
			options.AddFlags(flags)
			if err := flags.Parse(tc.flags); err != nil {
				t.Fatal(err)
			}
			b, err := options.Open(t.Context(), bucket.Place{Bucket: "backups"})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := b.List(t.Context()); err == nil {
				t.Fatal("the request was not refused")
			}
			if want := strings.TrimPrefix(s.URL, "https://"); host.Load() != want || path.Load() != tc.path {
				t.Errorf("sent to %s%s, want %s%s", host.Load(), path.Load(), want, tc.path)
			}
			got, _ := signed.Load().(string)
			if !strings.Contains(got, "Credential="+tc.key+"/") || !strings.Contains(got, "/"+tc.region+"/s3/") {
				t.Errorf("signed by %s, want %s in %s", got, tc.key, tc.region)
			}
		})
	}
}

// TestHostStyle: the name of the bucket is part of the host.
func TestHostStyle(t *testing.T) {
	t.Parallel()
	s := newService(t)
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	s.options.AddFlags(flags)
	if err := flags.Parse([]string{"--s3-path-style=false", "--s3-endpoint=" + strings.Replace(s.URL, "127.0.0.1", "invalid", 1)}); err != nil {
		t.Fatal(err)
	}
	_, err := s.open(t, "s3://backups/").List(t.Context())
	if err == nil || !strings.Contains(err.Error(), "backups.invalid") {
		t.Errorf("%v, want a look-up of backups.invalid", err)
	}
}
