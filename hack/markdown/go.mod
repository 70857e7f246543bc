// Pins the parser with which the Markdown of the repository is checked.
module github.com/jobset-apiserver/jobset-apiserver/hack/markdown

go 1.26.0

require github.com/yuin/goldmark v1.8.5
