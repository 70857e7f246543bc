// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// reaches calls a function that is vulnerable in the version of go.mod.
package main

import (
	"fmt"
	"os"

	"golang.org/x/text/language"
)

func main() {
	tags, _, err := language.ParseAcceptLanguage(os.Getenv("LANGUAGES"))
	fmt.Println(tags, err)
}
