# Times the batch sampler of the R package PACBO, by the authors of the paper.
# Usage: Rscript _pacbo.R data.csv n_iterations seed; prints CPU seconds, and K.
arguments <- commandArgs(trailingOnly = TRUE)
rows <- as.matrix(read.csv(arguments[1], header = FALSE))
dimnames(rows) <- NULL
library(PACBO)

# Since R 4.2 a condition may not have two elements, yet the package (0.1.0) compares
# class(matrix), now c("matrix", "array"), with "matrix". Show it the old answer.
package <- asNamespace("PACBO")
old_class <- new.env(parent = package)
old_class$class <- function(x) base::class(x)[1]
for (name in ls(package)) {
  f <- get(name, package)
  if (is.function(f)) {
    environment(f) <- old_class
    assign(name, compiler::cmpfun(f), old_class)
  }
}

set.seed(as.integer(arguments[3]))
radius <- max(sqrt(rowSums(rows^2)))
start <- proc.time()
result <- old_class$PACBO(rows, radius, K_max = 20,
                          N_iterations = as.integer(arguments[2]))
cat(sum((proc.time() - start)[1:2]), result$nb_of_clusters, "\n")
