// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package krew packs the kubectl plugin for each platform, and writes and checks the manifest with which Krew, the manager of kubectl
// plugins, installs it.
package krew

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/jobset-apiserver/jobset-apiserver/hack/images/golang"
)

// zipTime is the time of files in archives. It is the first that zip can express.
var zipTime = time.Date(1980, time.January, 1, 0, 0, 0, 0, time.UTC)

// File is what an archive has under a name.
type File struct {
	Name string
	Mode fs.FileMode
	// Path is where the content is read from.
	Path string
}

// ArchiveName returns the name of the archive of a program for a platform.
func ArchiveName(program string, platform golang.Platform) string {
	if platform.OS == "windows" {
		return program + "-" + platform.String() + ".zip"
	}
	return program + "-" + platform.String() + ".tar.gz"
}

// Pack writes an archive: zip for Windows, a compressed tar for others. Equal files give an equal archive.
func Pack(archive string, platform golang.Platform, files []File) error {
	write := writeTar
	if platform.OS == "windows" {
		write = writeZip
	}
	unfinished := archive + ".unfinished"
	defer os.Remove(unfinished)
	f, err := os.Create(unfinished)
	if err != nil {
		return err
	}
	if err := errors.Join(write(f, files), f.Close()); err != nil {
		return fmt.Errorf("writing %s: %w", archive, err)
	}
	return os.Rename(unfinished, archive)
}

func writeTar(out io.Writer, files []File) error {
	compressed := gzip.NewWriter(out)
	w := tar.NewWriter(compressed)
	for _, file := range files {
		info, err := os.Stat(file.Path)
		if err != nil {
			return err
		}
		header := &tar.Header{Typeflag: tar.TypeReg, Name: file.Name, Mode: int64(file.Mode), Size: info.Size(), ModTime: zipTime}
		if err := w.WriteHeader(header); err != nil {
			return err
		}
		if err := copyFile(w, file.Path); err != nil {
			return err
		}
	}
	return errors.Join(w.Close(), compressed.Close())
}

func writeZip(out io.Writer, files []File) error {
	w := zip.NewWriter(out)
	for _, file := range files {
		header := &zip.FileHeader{Name: file.Name, Method: zip.Deflate, Modified: zipTime}
		header.SetMode(file.Mode)
		entry, err := w.CreateHeader(header)
		if err != nil {
			return err
		}
		if err := copyFile(entry, file.Path); err != nil {
			return err
		}
	}
	return w.Close()
}

func copyFile(out io.Writer, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(out, f)
	return err
}

// Checksum returns the SHA-256 of a file in hexadecimal.
func Checksum(path string) (string, error) {
	h := sha256.New()
	if err := copyFile(h, path); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// contents returns the modes of the files in an archive, by their names.
func contents(archive string, platform golang.Platform) (map[string]fs.FileMode, error) {
	if platform.OS == "windows" {
		return zipContents(archive)
	}
	return tarContents(archive)
}

func zipContents(archive string) (map[string]fs.FileMode, error) {
	r, err := zip.OpenReader(archive)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	out := map[string]fs.FileMode{}
	for _, f := range r.File {
		out[f.Name] = f.Mode()
	}
	return out, nil
}

func tarContents(archive string) (map[string]fs.FileMode, error) {
	f, err := os.Open(archive)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	compressed, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	out := map[string]fs.FileMode{}
	r := tar.NewReader(compressed)
	for {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		out[header.Name] = header.FileInfo().Mode()
	}
}
