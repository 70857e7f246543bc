// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package payload

import (
	"bytes"
	"encoding/json"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/api/errors"
)

// scanJSON counts what a document of JSON holds. Whatever a decoder reads before it finds an error is counted.
func scanJSON(data []byte, merged bool) (objects int, err error) {
	c := &counter{merged: merged}
	fresh := false // the list or map that was entered last has no entry yet
	for i := 0; i < len(data) && err == nil; i++ {
		b := data[i]
		switch b {
		case ' ', '\t', '\n', '\r':
			continue
		case '}', ']':
			c.close()
			fresh = false
			continue
		case ',':
			err = c.entry()
			continue
		}
		if fresh {
			fresh = false
			if err = c.entry(); err != nil {
				break
			}
		}
		switch b {
		case '{', '[':
			err = c.open(b == '[')
			fresh = true
		case '"':
			i = endOfString(data, i)
		}
	}
	return c.objects, err
}

// endOfString returns the index of the quote that ends the string.
func endOfString(data []byte, start int) int {
	for i := start + 1; i < len(data); i++ {
		switch data[i] {
		case '\\':
			i++
		case '"':
			return i
		}
	}
	return len(data)
}

// scanYAML counts what a document of YAML holds. Most bodies that are called YAML are JSON, which clients of server-side
// apply send. Others are parsed, once the characters that may begin something show that the result is not large. Aliases
// are refused: each could stand for a megabyte.
func scanYAML(data []byte, merged bool) (objects int, err error) {
	if trimmed := bytes.TrimLeft(data, " \t\r\n"); len(trimmed) > 0 && trimmed[0] == '{' && json.Valid(data) {
		return scanJSON(data, merged)
	}
	if marks(data) > maxMarks {
		return 0, tooMany("%d characters of YAML that can begin an entry (, [ { : - ? and line breaks): send JSON instead", maxMarks)
	}
	var document yaml.Node
	if err := yaml.Unmarshal(data, &document); err != nil {
		return 0, errors.NewBadRequest("the body must be YAML: " + err.Error())
	}
	c := &counter{merged: merged}
	err = c.node(&document)
	return c.objects, err
}

func marks(data []byte) int {
	n := 0
	for _, b := range data {
		switch b {
		case ',', '[', '{', ':', '-', '?', '\n', '\r':
			n++
		}
	}
	return n
}

func (c *counter) node(n *yaml.Node) error {
	switch n.Kind {
	case yaml.AliasNode:
		return errors.NewBadRequest("the body must have no aliases of YAML: write out what they stand for, or send JSON")
	case yaml.SequenceNode, yaml.MappingNode:
		if err := c.open(n.Kind == yaml.SequenceNode); err != nil {
			return err
		}
		defer c.close()
	}
	for i, child := range n.Content {
		if n.Kind != yaml.MappingNode || i%2 == 0 {
			if err := c.entry(); err != nil {
				return err
			}
		}
		if err := c.node(child); err != nil {
			return err
		}
	}
	return nil
}
