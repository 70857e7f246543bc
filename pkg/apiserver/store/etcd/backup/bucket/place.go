// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package bucket

import (
	"errors"
	"fmt"
	"strings"

	"github.com/minio/minio-go/v7/pkg/s3utils"
)

const scheme = "s3://"

// Place is where backups are in a bucket: s3://BUCKET/PREFIX/, or one of them: s3://BUCKET/PREFIX/NAME.
type Place struct {
	Bucket string
	// Prefix is what the names of all objects begin with. It is empty or ends with a slash.
	Prefix string
	// Name is the rest of the name of one object, and empty for a place of many.
	Name string
}

// IsPlace returns whether an argument names a bucket and not a file.
func IsPlace(argument string) bool { return strings.HasPrefix(argument, scheme) }

// ParsePlace reads the address of a bucket or of an object in it.
func ParsePlace(address string) (Place, error) {
	if !IsPlace(address) {
		return Place{}, fmt.Errorf("%q must begin with %s, as in s3://BUCKET/PREFIX/", address, scheme)
	}
	name, path, _ := strings.Cut(strings.TrimPrefix(address, scheme), "/")
	if err := s3utils.CheckValidBucketNameStrict(name); err != nil {
		return Place{}, fmt.Errorf("%q must name a bucket, as in s3://BUCKET/PREFIX/: %w", address, err)
	}
	if strings.ContainsAny(path, "?#") || strings.HasPrefix(path, "/") {
		return Place{}, fmt.Errorf("%q must be s3://BUCKET/PREFIX/ without a question mark, a hash sign or an empty name", address)
	}
	at := strings.LastIndexByte(path, '/') + 1
	return Place{Bucket: name, Prefix: path[:at], Name: path[at:]}, nil
}

// ParseDirectory reads the address of a place for many backups.
func ParseDirectory(address string) (Place, error) {
	place, err := ParsePlace(address)
	if err == nil && place.Name != "" {
		err = fmt.Errorf("%q must end with a slash: the name of each backup is added to it", address)
	}
	return place, err
}

// String returns the address.
func (p Place) String() string { return scheme + p.Bucket + "/" + p.Prefix + p.Name }

// object returns the name of an object in the bucket.
func (p Place) object(name string) string { return p.Prefix + name }

// errEmpty says that a place has no backup.
var errEmpty = errors.New("has no backup")
