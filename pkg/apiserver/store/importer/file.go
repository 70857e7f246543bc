// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/requests/payload"
)

// budget bounds what is read of a file for one object, indentation included.
const budget = 4 * payload.MaxBytes

var errTooLong = fmt.Errorf("an object, or what is beside the list of objects, must have at most %d bytes in the file", budget)

// FromFile returns the objects of a list in JSON, as kubectl get -o json prints it.
func FromFile(r io.Reader) Source {
	return func(ctx context.Context, fn func([]byte) error) error {
		limited := &limitedReader{reader: r, left: budget}
		f := &file{limited: limited, decoder: json.NewDecoder(limited), fn: fn}
		return f.read(ctx)
	}
}

// limitedReader fails after a number of bytes, and each object begins again.
type limitedReader struct {
	reader io.Reader
	left   int
}

// Read implements io.Reader.
func (l *limitedReader) Read(p []byte) (int, error) {
	if l.left == 0 {
		return 0, errTooLong
	}
	n, err := l.reader.Read(p[:min(len(p), l.left)])
	l.left -= n
	return n, err
}

// file is read as a stream.
type file struct {
	limited *limitedReader
	decoder *json.Decoder
	fn      func([]byte) error
}

var errNoList = errors.New(`must be a list with "items", as kubectl get -o json prints it`)

func (f *file) read(ctx context.Context) error {
	if err := f.delim('{'); err != nil {
		return err
	}
	found := false
	for f.decoder.More() {
		key, err := f.decoder.Token()
		if err != nil {
			return err
		}
		switch {
		case key != "items":
			err = f.skip()
		case found:
			err = errors.New(`must have "items" once, not twice`)
		default:
			found = true
			err = f.items(ctx)
		}
		if err != nil {
			return err
		}
	}
	if err := f.delim('}'); err != nil {
		return err
	}
	if _, err := f.decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("must have one list, and nothing after it")
	}
	if !found {
		return errNoList
	}
	return nil
}

func (f *file) delim(want json.Delim) error {
	token, err := f.decoder.Token()
	switch {
	case errors.Is(err, io.EOF):
		return errors.New("ends before the list does")
	case err != nil:
		return err
	case token != want:
		return errNoList
	}
	return nil
}

func (f *file) skip() error {
	var ignored json.RawMessage
	return f.decoder.Decode(&ignored)
}

func (f *file) items(ctx context.Context) error {
	if err := f.delim('['); err != nil {
		return err
	}
	for f.decoder.More() {
		if err := ctx.Err(); err != nil {
			return err
		}
		var item json.RawMessage
		if err := f.decoder.Decode(&item); err != nil {
			return err
		}
		if err := f.fn(item); err != nil {
			return err
		}
		f.limited.left = budget
	}
	return f.delim(']')
}
